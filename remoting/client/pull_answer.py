"""Reads a broker's answer to a pull, for all consumers. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.pull import PullMessageResponseHeader
from remoting.wire.headers.typed import read_header
from remoting.wire.stored_message import StoredMessage, decode_messages


class PullStatus(Enum):
    FOUND = "found"
    NO_NEW_MESSAGE = "no new message"
    NO_MATCHED_MESSAGE = "no matched message"
    OFFSET_ILLEGAL = "offset illegal"


_STATUSES: dict[int, PullStatus] = {
    ResponseCode.SUCCESS: PullStatus.FOUND,
    ResponseCode.PULL_NOT_FOUND: PullStatus.NO_NEW_MESSAGE,
    ResponseCode.PULL_RETRY_IMMEDIATELY: PullStatus.NO_MATCHED_MESSAGE,
    ResponseCode.PULL_OFFSET_MOVED: PullStatus.OFFSET_ILLEGAL,
}


@dataclass(frozen=True, slots=True)
class PullAnswer:
    """`next_offset` is where to pull next; `messages` are those that match the subscription, in order.

    FOUND may hold no message: the broker compares hashes of tags, and what only collides is left out.
    """

    status: PullStatus
    next_offset: int
    min_offset: int
    max_offset: int
    suggested_broker_id: int
    messages: list[StoredMessage]


def read_pull_answer(answer: Command, matches: Callable[[StoredMessage], bool]) -> PullAnswer | None:
    """Returns None for any other code: the broker refused. Raises HeaderError or BodyError."""
    status = _STATUSES.get(answer.code)
    if status is None:
        return None
    header = read_header(PullMessageResponseHeader, answer.ext_fields)
    stored = decode_messages(answer.body) if status is PullStatus.FOUND else []
    return PullAnswer(
        status,
        header.next_begin_offset,
        header.min_offset,
        header.max_offset,
        header.suggest_which_broker_id,
        [message for message in stored if matches(message)],
    )
