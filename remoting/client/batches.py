"""Puts many messages of one topic into as few requests as possible (RocketMQ's `MessageBatch`). Pure.

Each message keeps its own message id; the messages of one request take no more than a broker accepts as one body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from remoting.client.outgoing import (
    Message,
    OutgoingMessage,
    check_body,
    complete_properties,
    encode_checked,
    is_delayed,
)
from remoting.client.send_result import SendResult
from remoting.wire.batch import encode_batch
from remoting.wire.errors import MessageError
from remoting.wire.limits import BODY_BYTES_MAX
from remoting.wire.properties import Property

# Fixed part of an entry: five ints and the length of the properties.
_ENTRY_BYTES = 22

_Entry = tuple[int, bytes, dict[str, str]]


def batches(
    topic: str, messages: Sequence[Message], next_id: Callable[[], str], bytes_max: int = BODY_BYTES_MAX
) -> list[OutgoingMessage]:
    """Returns `messages` as batches of at most `bytes_max` each, in order.

    Raises MessageError for no messages, one that is illegal or too large, and one that is delayed.
    """
    if not messages:
        raise MessageError(f"the batch for topic {topic!r} is empty")
    parts: list[list[_Entry]] = [[]]
    part_bytes = 0
    for message in messages:
        entry, entry_bytes = _entry(message, next_id())
        if entry_bytes > bytes_max:
            raise MessageError(f"a message of {entry_bytes} bytes does not fit into a batch of {bytes_max}")
        if parts[-1] and part_bytes + entry_bytes > bytes_max:
            parts.append([])
            part_bytes = 0
        parts[-1].append(entry)
        part_bytes += entry_bytes
    return [_outgoing(topic, entries) for entries in parts]


def split_result(result: SendResult) -> list[SendResult]:
    """Returns one result per message of a batch: ids are comma-separated, queue offsets follow each other."""
    message_ids = result.message_id.split(",")
    offset_ids = result.offset_message_id.split(",")
    if len(offset_ids) != len(message_ids):  # stored as one message: its id is good for all
        offset_ids = offset_ids[:1] * len(message_ids)
    return [
        SendResult(message_id, offset_id, result.queue, result.queue_offset + index, result.status)
        for index, (message_id, offset_id) in enumerate(zip(message_ids, offset_ids, strict=True))
    ]


def _entry(message: Message, message_id: str) -> tuple[_Entry, int]:
    """Returns the entry of a message and its size in bytes."""
    check_body(message.body)
    if is_delayed(message):
        raise MessageError("a message of a batch cannot be delayed: send it by itself")
    properties = complete_properties(message, message_id)
    text = encode_checked(properties)
    return (message.flag, message.body, properties), _ENTRY_BYTES + len(message.body) + len(text.encode())


def _outgoing(topic: str, entries: list[_Entry]) -> OutgoingMessage:
    message_ids = ",".join(properties[Property.UNIQ_KEY] for _, _, properties in entries)
    return OutgoingMessage(topic, message_ids, encode_batch(entries), "", 0, 0, is_batch=True)
