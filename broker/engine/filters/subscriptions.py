"""Which messages a subscription lets through, as a broker can see it (RocketMQ's `ExpressionMessageFilter`).

TAG goes by the hash of the tag alone; the client looks at its text. SQL92 goes by the message's properties; it is
compiled when it is first needed and kept while it is in use.

| asked | expression | code |
|---|---|---|
| check before the start (46), pull with its own expression | can't be read, or of an unknown kind | 23 |
| pull of a group | the same | 27 |
| all | SQL92 is switched off | 1 |

28, "filter data is older than the subscription", cannot be here: the broker keeps one text for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from broker.engine.filters.errors import FilterError
from broker.engine.filters.property_filter import PropertyFilter
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from remoting.wire.tags import ALL, parse_tags

TAG = "TAG"
SQL92 = "SQL92"
# At most about 70 MB of code; expressions in use beyond them are compiled anew at every pull.
KEPT_CHARS_MAX = 512 * 1024
# What the shortest one counts for.
_KEPT_CHARS_MIN = 64

# Takes the text of a message's properties (`remoting/wire/properties_text.py`).
PropertiesMatch = Callable[[bytes], bool]


class MessageFilter(NamedTuple):
    """Both must agree; None lets all through. `codes` takes a consume-queue entry's tags code."""

    codes: Callable[[int], bool] | None = None
    properties: PropertiesMatch | None = None


EVERYTHING = MessageFilter()


class SubscriptionFilters:
    def __init__(self, *, has_sql: bool) -> None:
        self._has_sql = has_sql
        # The one that was used last is the last. An error's text is kept too: who doesn't hear it asks every second.
        self._compiled: dict[str, PropertyFilter | str] = {}
        self._compiled_chars = 0

    def check(self, kind: str | None, text: str) -> None:
        """Before a consumer starts. Tags are always right here. Raises MessageError."""
        if not _is_tag(kind):
            self._check_has_sql(kind)
            self._sql(kind, text)

    def of_request(self, kind: str | None, text: str | None) -> MessageFilter:
        """Of the expression that a pull brings along. Raises MessageError."""
        if _is_tag(kind):
            return _by_tags(text)
        compiled = self._sql(kind, text or "")
        self._check_has_sql(kind)
        return MessageFilter(properties=compiled.matches)

    def of_group(self, subscription: SubscriptionData) -> MessageFilter:
        """Of the subscription that the broker keeps for a group. Raises MessageError."""
        if _is_tag(subscription.expression_type):
            return _by_codes(subscription)
        try:
            compiled = self._sql(subscription.expression_type, subscription.sub_string)
        except MessageError as error:
            text = f"The broker's consumer filter data is not exist!Your expression may be wrong! {error}"
            raise MessageError(text, ResponseCode.FILTER_DATA_NOT_EXIST) from error
        self._check_has_sql(subscription.expression_type)
        return EVERYTHING if subscription.class_filter_mode else MessageFilter(properties=compiled.matches)

    def _check_has_sql(self, kind: str | None) -> None:
        if not self._has_sql:
            raise MessageError(
                f"The broker does not support consumer to filter message by {kind}", ResponseCode.SYSTEM_ERROR
            )

    def _sql(self, kind: str | None, text: str) -> PropertyFilter:
        if kind != SQL92:
            raise MessageError(
                f"expressions of kind {kind} are not known; use {TAG} or {SQL92}",
                ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            )
        compiled = self._compiled.pop(text, None)
        if compiled is None:
            compiled = _compile(text)
            self._compiled_chars += _weight(text)
        self._compiled[text] = compiled
        while self._compiled_chars > KEPT_CHARS_MAX:
            oldest = next(iter(self._compiled))
            del self._compiled[oldest]
            self._compiled_chars -= _weight(oldest)
        if isinstance(compiled, str):
            raise MessageError(compiled, ResponseCode.SUBSCRIPTION_PARSE_FAILED)
        return compiled


def _compile(text: str) -> PropertyFilter | str:
    try:
        return PropertyFilter(text)
    except FilterError as error:
        return str(error)


def _weight(text: str) -> int:
    return max(len(text), _KEPT_CHARS_MIN)


def _is_tag(kind: str | None) -> bool:
    return not kind or kind == TAG


def _by_tags(text: str | None) -> MessageFilter:
    """Raises MessageError."""
    expression = parse_tags(text)
    return EVERYTHING if expression.matches_all else MessageFilter(expression.codes.__contains__)


def _by_codes(subscription: SubscriptionData) -> MessageFilter:
    """`code_set` is the client's own; it lacks only where a client sends none, and then the text counts."""
    if subscription.class_filter_mode or subscription.sub_string.strip() in ("", ALL):
        return EVERYTHING
    if subscription.code_set:
        return MessageFilter(frozenset(subscription.code_set).__contains__)
    return _by_tags(subscription.sub_string)
