"""Tags and tag expressions (RocketMQ's `FilterAPI`).

The broker matches by hash only; the client looks at the text again, because hashes collide ("Aa" and "BB").
"""

from __future__ import annotations

import msgspec

from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from remoting.wire.java_string import string_hash
from remoting.wire.limits import TAG_EXPRESSION_CHARS_MAX

ALL = "*"


def tags_code(tags: str | None) -> int:
    """What stands in the consume queue for a message's tags: Java's string hash; 0 without tags."""
    return string_hash(tags) if tags else 0


class TagExpression(msgspec.Struct, frozen=True):
    """`*`, or `A || B`. `tags` is empty for `*`."""

    text: str
    tags: tuple[str, ...]
    codes: frozenset[int]

    @property
    def matches_all(self) -> bool:
        return not self.tags

    def matches_code(self, code: int) -> bool:
        """The broker's check; `code` is the consume-queue entry's."""
        return not self.tags or code in self.codes

    def matches(self, tags: str | None) -> bool:
        """The client's check on the text."""
        return not self.tags or tags in self.tags


def parse_tags(text: str | None) -> TagExpression:
    """None, "" and `*` mean all.

    Raises MessageError (SUBSCRIPTION_PARSE_FAILED) when no tag is left, as in `||`, or the text is too long.
    """
    if not text or text.strip() == ALL:
        return TagExpression(ALL, (), frozenset())
    if len(text) > TAG_EXPRESSION_CHARS_MAX:
        raise MessageError(
            f"the tag expression has {len(text)} characters, of {TAG_EXPRESSION_CHARS_MAX} allowed: subscribe to * and"
            " choose in the consumer",
            ResponseCode.SUBSCRIPTION_PARSE_FAILED,
        )
    tags = tuple(dict.fromkeys(tag for part in text.split("||") if (tag := part.strip())))
    if not tags:
        raise MessageError(f"the tag expression {text!r} names no tag", ResponseCode.SUBSCRIPTION_PARSE_FAILED)
    return TagExpression(text, tags, frozenset(string_hash(tag) for tag in tags))
