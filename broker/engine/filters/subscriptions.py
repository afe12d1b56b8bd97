"""Which messages a subscription lets through, as a broker can see it (RocketMQ's `ExpressionMessageFilter`).

TAG compares the hash of the tag alone; the client compares its text. SQL92 is evaluated over the message's properties;
an expression is compiled when it is first needed and kept while it is in use.

| request | expression | response code |
|---|---|---|
| CHECK_CLIENT_CONFIG (46), or a pull with its own expression | no SQL92, or of an unknown type | 23 |
| a pull that relies on its group's subscription | the same | 27 |
| each of them | SQL92 while `enablePropertyFilter` is off | 1 |

28, FILTER_DATA_NOT_LATEST, cannot be: the broker keeps one expression for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from remoting.sql92.errors import FilterError
from remoting.sql92.property_filter import PropertyFilter
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from remoting.wire.tags import ALL, parse_tags

TAG = "TAG"
SQL92 = "SQL92"
# Characters of all compiled expressions together: about 70 MB of code. Beyond it the one used longest ago is dropped
# and compiled anew when it is pulled with again.
KEPT_CHARS_MAX = 512 * 1024
# What the shortest expression counts for.
_KEPT_CHARS_MIN = 64

# Takes the text of a message's properties (`remoting/wire/property_lookup.py`).
PropertiesMatch = Callable[[bytes], bool]


class MessageFilter(NamedTuple):
    """Lets a message through where both functions return true; None lets all through.

    `codes` takes the tags code of a consume-queue entry, `properties` the stored text of a message's properties.
    """

    codes: Callable[[int], bool] | None = None
    properties: PropertiesMatch | None = None


EVERYTHING = MessageFilter()


class SubscriptionFilters:
    """Makes the filters of subscriptions; keeps compiled SQL92 expressions. `has_sql` is `enablePropertyFilter`."""

    def __init__(
        self,
        *,
        has_sql: bool,
        kept_chars_max: int = KEPT_CHARS_MAX,
        compile_sql: Callable[[str], PropertyFilter] = PropertyFilter,
    ) -> None:
        self._has_sql = has_sql
        self._kept_chars_max = kept_chars_max
        self._compile_sql = compile_sql
        # In order of their last use. The text of an error is kept, too: a client that ignores it asks every second.
        self._compiled: dict[str, PropertyFilter | str] = {}
        self._compiled_chars = 0

    def check(self, expression_type: str | None, text: str) -> None:
        """Raises MessageError where a consumer cannot start with this expression; tag expressions are always right."""
        if not _is_tag(expression_type):
            self._check_has_sql(expression_type)
            self._sql(expression_type, text)

    def of_request(self, expression_type: str | None, text: str | None) -> MessageFilter:
        """Returns the filter of the expression that a pull request carries. Raises MessageError."""
        if _is_tag(expression_type):
            return _by_tags(text)
        compiled = self._sql(expression_type, text or "")
        self._check_has_sql(expression_type)
        return MessageFilter(properties=compiled.matches)

    def of_group(self, subscription: SubscriptionData) -> MessageFilter:
        """Returns the filter of the subscription that the broker keeps for a group. Raises MessageError."""
        if _is_tag(subscription.expression_type):
            return _by_codes(subscription)
        try:
            compiled = self._sql(subscription.expression_type, subscription.sub_string)
        except MessageError as error:
            text = f"The broker's consumer filter data is not exist!Your expression may be wrong! {error}"
            raise MessageError(text, ResponseCode.FILTER_DATA_NOT_EXIST) from error
        self._check_has_sql(subscription.expression_type)
        return EVERYTHING if subscription.class_filter_mode else MessageFilter(properties=compiled.matches)

    def _check_has_sql(self, expression_type: str | None) -> None:
        if not self._has_sql:
            raise MessageError(
                f"The broker does not support consumer to filter message by {expression_type}",
                ResponseCode.SYSTEM_ERROR,
            )

    def _sql(self, expression_type: str | None, text: str) -> PropertyFilter:
        if expression_type != SQL92:
            raise MessageError(
                f"expressions of type {expression_type} are not known; use {TAG} or {SQL92}",
                ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            )
        compiled = self._compiled.pop(text, None)
        if compiled is None:
            compiled = self._compile(text)
            self._compiled_chars += _weight(text)
        self._compiled[text] = compiled
        while self._compiled_chars > self._kept_chars_max:
            oldest = next(iter(self._compiled))
            del self._compiled[oldest]
            self._compiled_chars -= _weight(oldest)
        if isinstance(compiled, str):
            raise MessageError(compiled, ResponseCode.SUBSCRIPTION_PARSE_FAILED)
        return compiled

    def _compile(self, text: str) -> PropertyFilter | str:
        """Returns the filter, or the text of its error."""
        try:
            return self._compile_sql(text)
        except FilterError as error:
            return str(error)


def _weight(text: str) -> int:
    """Returns the characters that a compiled expression counts for."""
    return max(len(text), _KEPT_CHARS_MIN)


def _is_tag(expression_type: str | None) -> bool:
    return not expression_type or expression_type == TAG


def _by_tags(text: str | None) -> MessageFilter:
    """Returns the filter of a tag expression. Raises MessageError for one that is none."""
    expression = parse_tags(text)
    return EVERYTHING if expression.matches_all else MessageFilter(expression.codes.__contains__)


def _by_codes(subscription: SubscriptionData) -> MessageFilter:
    """Returns the filter of the tag hashes that the client sent, or of its expression where it sent none."""
    if subscription.class_filter_mode or subscription.sub_string.strip() in ("", ALL):
        return EVERYTHING
    if subscription.code_set:
        return MessageFilter(frozenset(subscription.code_set).__contains__)
    return _by_tags(subscription.sub_string)
