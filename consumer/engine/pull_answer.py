"""Reads a broker's answer to a pull: into a value, or an error with the delay until the next try. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from consumer.engine.subscriptions import Subscriptions
from remoting.wire.codes import ResponseCode, response_name
from remoting.wire.command import Command
from remoting.wire.headers.pull import PullMessageResponseHeader
from remoting.wire.headers.typed import read_header
from remoting.wire.stored_message import StoredMessage, decode_messages

RETRY_AFTER_MS = 1000


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
_RETRY_AFTER_MS: dict[int, int] = {ResponseCode.FLOW_CONTROL: 20}
# The broker does not know this member or its subscription; the regular heartbeat would come up to 30 s later.
NEEDS_HEARTBEAT: frozenset[int] = frozenset(
    {
        ResponseCode.SUBSCRIPTION_NOT_EXIST,
        ResponseCode.SUBSCRIPTION_NOT_LATEST,
        ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
    }
)


class PullRefused(Exception):
    """The broker answered with any other code; the pull may be repeated after `retry_after_ms`."""

    def __init__(self, code: int, remark: str | None) -> None:
        super().__init__(f"{response_name(code)} ({code}): {remark or 'no reason given'}")
        self.code = code
        self.retry_after_ms = _RETRY_AFTER_MS.get(code, RETRY_AFTER_MS)


@dataclass(frozen=True, slots=True)
class PullAnswer:
    """`next_offset` is where to pull next; `messages` are those that match the subscription."""

    status: PullStatus
    next_offset: int
    suggested_broker_id: int
    messages: list[StoredMessage]


def read_pull_answer(answer: Command, subscriptions: Subscriptions) -> PullAnswer:
    """Raises PullRefused, HeaderError or BodyError."""
    status = _STATUSES.get(answer.code)
    if status is None:
        raise PullRefused(answer.code, answer.remark)
    header = read_header(PullMessageResponseHeader, answer.ext_fields)
    messages: list[StoredMessage] = []
    if status is PullStatus.FOUND:
        messages = [message for message in decode_messages(answer.body) if subscriptions.matches(message)]
    return PullAnswer(status, header.next_begin_offset, header.suggest_which_broker_id, messages)
