"""What is traced of a send (Java `SendMessageTraceHookImpl`). Pure.

A message that no broker stored is not traced, as in Java; nor is one whose broker said so, or the trace itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from remoting.client.batches import split_result
from remoting.client.outgoing import OutgoingMessage
from remoting.client.send_result import SendResult, SendStatus
from remoting.wire.batch import decode_batch
from remoting.wire.bodies.trace import PUB, MessageType, TraceRecord
from remoting.wire.properties import Property, decode_properties

# `MixAll.DEFAULT_TRACE_REGION_ID`, where a broker names none.
DEFAULT_REGION = "DefaultRegion"
_DELAYS = (Property.DELAY, Property.TIMER_DELAY_MS, Property.TIMER_DELIVER_MS, Property.TIMER_DELAY_SEC)


@dataclass(frozen=True, slots=True)
class Sending:
    """One send that was answered: by whom, to the broker at `address`, when (ms), and the answer's fields."""

    group: str
    address: str
    began_ms: int
    ended_ms: int
    answer: Mapping[str, str]


def send_records(message: OutgoingMessage, result: SendResult, sending: Sending) -> list[TraceRecord]:
    """Returns a record per message: a batch is one send of many, found by the id of each."""
    if sending.answer.get(Property.TRACE_ON) == "false":
        return []
    if not message.is_batch:
        return [_record(message.properties_text, len(message.body), result, sending)]
    entries = zip(decode_batch(message.body), split_result(result), strict=True)
    return [_record(entry.properties_text, len(entry.body), one, sending) for entry, one in entries]


def _record(properties_text: str, body_length: int, result: SendResult, sending: Sending) -> TraceRecord:
    properties = decode_properties(properties_text)
    return TraceRecord(
        kind=PUB,
        timestamp_ms=sending.began_ms,
        region_id=sending.answer.get(Property.MSG_REGION) or DEFAULT_REGION,
        group=sending.group,
        topic=result.queue.topic,
        message_id=result.message_id,
        tags=properties.get(Property.TAGS),
        keys=properties.get(Property.KEYS),
        store_host=sending.address,
        body_length=body_length,
        cost_ms=max(0, sending.ended_ms - sending.began_ms),
        message_type=_message_type(properties),
        offset_message_id=result.offset_message_id,
        is_success=result.status is SendStatus.SEND_OK,
    )


def _message_type(properties: Mapping[str, str]) -> MessageType:
    """Returns what the properties make of a message (`DefaultMQProducerImpl.sendKernelImpl`)."""
    if properties.get(Property.TRAN_MSG) == "true":
        return MessageType.HALF
    if any(name in properties for name in _DELAYS):
        return MessageType.DELAYED
    return MessageType.NORMAL
