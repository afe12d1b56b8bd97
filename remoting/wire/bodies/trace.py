"""Traces: the records that clients send as bodies of messages of a trace topic (`TraceDataEncoder`).

    record   | kind | 0x01 | field | 0x01 | field … | 0x02 |        a body is one record after the other

Which fields a kind has, in order, is `_LAYOUTS`; later versions add some at the end, older ones lack them.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

import msgspec

from remoting.wire.command import Body

PUB = "Pub"
SUB_BEFORE = "SubBefore"
SUB_AFTER = "SubAfter"
END_TRANSACTION = "EndTransaction"
RECALL = "Recall"

# Of one body; a producer of ours or Apache's sends some hundred at most.
RECORDS_MAX = 10_000
_LAYOUTS: dict[str, tuple[str, ...]] = {
    PUB: (
        *("timestamp_ms", "region_id", "group", "topic", "message_id", "tags", "keys", "store_host", "body_length"),
        *("cost_ms", "message_type", "offset_message_id", "is_success", "client_host"),
    ),
    SUB_BEFORE: ("timestamp_ms", "region_id", "group", "request_id", "message_id", "retry_times", "keys"),
    SUB_AFTER: (
        *("request_id", "message_id", "cost_ms", "is_success", "keys", "context_code", "timestamp_ms", "group"),
    ),
    END_TRANSACTION: (
        *("timestamp_ms", "region_id", "group", "topic", "message_id", "tags", "keys", "store_host", "message_type"),
        *("transaction_id", "transaction_state", "is_from_check"),
    ),
    RECALL: ("timestamp_ms", "region_id", "group", "topic", "message_id", "is_success"),
}
# Later versions read them, none writes them yet.
_OPTIONAL = {PUB: ("client_host",), SUB_AFTER: ("group",)}
# A Pub of before 4.4 says whether it succeeded where later ones have the offset message id.
_OLD_PUB = tuple(name for name in _LAYOUTS[PUB] if name not in ("offset_message_id", "client_host"))


class MessageType(IntEnum):
    """Ordinals of Java's `MessageType`, as traces have them."""

    NORMAL = 0
    HALF = 1
    COMMITTED = 2
    DELAYED = 3
    ORDERED = 4


class ConsumeOutcome(IntEnum):
    """Ordinals of Java's `ConsumeReturnType`, as traces have them."""

    SUCCESS = 0
    TIME_OUT = 1
    EXCEPTION = 2
    RETURNED_NULL = 3
    FAILED = 4


class TraceRecord(msgspec.Struct, kw_only=True):
    """One step of a message. A field that the kind or the client's version lacks is None.

    `request_id` pairs SUB_BEFORE and SUB_AFTER; `message_type` is a `MessageType`, `context_code` a `ConsumeOutcome`;
    times in ms.
    """

    kind: str
    message_id: str
    timestamp_ms: int | None = None
    group: str | None = None
    topic: str | None = None
    region_id: str | None = None
    tags: str | None = None
    keys: str | None = None
    store_host: str | None = None
    client_host: str | None = None
    body_length: int | None = None
    cost_ms: int | None = None
    message_type: int | None = None
    offset_message_id: str | None = None
    is_success: bool | None = None
    request_id: str | None = None
    retry_times: int | None = None
    context_code: int | None = None
    transaction_id: str | None = None
    transaction_state: str | None = None
    is_from_check: bool | None = None


def read_trace(body: Body) -> list[TraceRecord]:
    """Returns the records of one body, RECORDS_MAX at most.

    What is no record is left out: anyone may send to a trace topic, and one broken record must not hide the others.
    """
    text = bytes(body).decode("utf-8", "replace")
    records = (_record(line.split("\x01")) for line in text.split("\x02", RECORDS_MAX)[:RECORDS_MAX])
    return [record for record in records if record is not None]


def write_trace(records: Iterable[TraceRecord]) -> bytes:
    """Encodes records as one body, as `TraceDataEncoder` of 5.4.0 does.

    What is missing becomes "null", since Java's decoder fails at an empty last field; control characters of a text
    become blanks, since they would end the field.
    """
    return "".join(_line(record) for record in records).encode("utf-8", "replace")


def _line(record: TraceRecord) -> str:
    optional = _OPTIONAL.get(record.kind, ())
    names = [name for name in _LAYOUTS[record.kind] if name not in optional or getattr(record, name) is not None]
    return "\x01".join((record.kind, *(_word(getattr(record, name)) for name in names))) + "\x02"


def _word(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
    return str(value).replace("\x01", " ").replace("\x02", " ") or "null"


def _record(words: list[str]) -> TraceRecord | None:
    kind, *values = words
    layout = _LAYOUTS.get(kind)
    if layout is None:
        return None
    if kind == PUB and len(values) <= len(_OLD_PUB):
        layout = _OLD_PUB
    fields = {name: value for name, value in zip(layout, values, strict=False) if value not in ("", "null")}
    try:
        return msgspec.convert(fields | {"kind": kind}, TraceRecord, strict=False)
    except msgspec.ValidationError:
        return None
