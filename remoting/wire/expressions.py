"""What a subscription lets through: a tag expression, or an SQL92 expression over the properties of messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from remoting.wire.tags import TagExpression, parse_tags


@dataclass(frozen=True, slots=True)
class SqlExpression:
    """As `MessageSelector.bySql`. Clients leave it to brokers: what they give matches."""

    text: str
    tags: ClassVar[tuple[str, ...]] = ()
    codes: ClassVar[frozenset[int]] = frozenset()
    matches_all: ClassVar[bool] = True

    def matches(self, _tags: str | None) -> bool:
        return True


Expression = TagExpression | SqlExpression
TAG = "TAG"
SQL92 = "SQL92"


def expression_type(expression: Expression | None) -> str:
    """Returns the type, as pulls and heartbeats name it."""
    return SQL92 if isinstance(expression, SqlExpression) else TAG


def parse_expression(text: str | SqlExpression | None) -> Expression:
    """Parses a tag expression, or checks an SQL92 expression. Raises MessageError (SUBSCRIPTION_PARSE_FAILED)."""
    if not isinstance(text, SqlExpression):
        return parse_tags(text)
    if not text.text.strip():
        raise MessageError(
            "the SQL92 expression is blank: leave it out to get every message", ResponseCode.SUBSCRIPTION_PARSE_FAILED
        )
    return text


def tags_or_sql(tags: str, sql: str | None) -> Expression:
    """Returns the expression of a caller who gives one of the two. Raises MessageError where both are given."""
    if sql is None:
        return parse_tags(tags)
    if not parse_tags(tags).matches_all:
        raise MessageError(
            f"tags={tags!r} and sql={sql!r} exclude each other: in SQL92 a tag is the property TAGS",
            ResponseCode.SUBSCRIPTION_PARSE_FAILED,
        )
    return parse_expression(SqlExpression(sql))
