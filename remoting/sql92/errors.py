"""Errors of an SQL92 expression, and of its evaluation."""

from __future__ import annotations

from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError


class FilterError(MessageError):
    """Raised for an expression that cannot be used.

    The text says where (counted from 1), what is wrong and what to write instead; `position` counts from 0.
    """

    def __init__(self, position: int, what: str, remedy: str) -> None:
        super().__init__(
            f"SQL92 expression, character {position + 1}: {what}; {remedy}", ResponseCode.SUBSCRIPTION_PARSE_FAILED
        )
        self.position = position


class Incomparable(Exception):
    """Raised where a property of a message does not fit its comparison, like 'ten' > 5: the message is kept out."""
