"""What can be wrong with an SQL92 expression, and with the values that it meets."""

from __future__ import annotations

from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError


class FilterError(MessageError):
    """The expression cannot be used; says where (counted from 1), what is wrong and what to write instead."""

    def __init__(self, position: int, what: str, remedy: str) -> None:
        super().__init__(
            f"SQL92 expression, character {position + 1}: {what}; {remedy}", ResponseCode.SUBSCRIPTION_PARSE_FAILED
        )
        self.position = position


class Incomparable(Exception):
    """A message's property doesn't fit the comparison, like 'ten' > 5: the whole expression lets it not through."""
