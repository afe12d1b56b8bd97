"""The result of a send (RocketMQ's `SendResult`, `SendStatus`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.codes import ResponseCode


class SendStatus(IntEnum):
    """In all four cases the broker holds the message; the last three say which copy was not confirmed in time."""

    SEND_OK = ResponseCode.SUCCESS
    FLUSH_DISK_TIMEOUT = ResponseCode.FLUSH_DISK_TIMEOUT
    FLUSH_SLAVE_TIMEOUT = ResponseCode.FLUSH_SLAVE_TIMEOUT
    SLAVE_NOT_AVAILABLE = ResponseCode.SLAVE_NOT_AVAILABLE


@dataclass(frozen=True, slots=True)
class SendResult:
    """`message_id` was made by the client (UNIQ_KEY), `offset_message_id` by the broker.

    `queue_offset` is the message's own entry in its queue. `recall_handle`, of a timer message, calls it back before
    its time; `transaction_id` is what the broker calls a half message.
    """

    message_id: str
    offset_message_id: str
    queue: MessageQueue
    queue_offset: int
    status: SendStatus
    recall_handle: str | None = None
    transaction_id: str | None = None
