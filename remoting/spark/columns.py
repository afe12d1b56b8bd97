"""The columns of a message as Spark sees it, and how each is read. Pure.

What a client wrote is not trusted: a time that no calendar has is null, and a body that cannot be decompressed is null
with the reason in `body_error`, so that one message does not end a job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from remoting.spark.errors import OptionError
from remoting.wire.compression import decompress
from remoting.wire.errors import BodyError
from remoting.wire.message_id import Host
from remoting.wire.names import without_namespace
from remoting.wire.stored_message import StoredMessage

if TYPE_CHECKING:
    import pyarrow as pa

# What Python's calendar can show, and so `collect()`: the years 1 to 9999.
_MS_MIN, _MS_MAX = -62_135_596_800_000, 253_402_300_799_999


class Row(NamedTuple):
    """A message with what is known of it beside."""

    message: StoredMessage
    broker_name: str
    topic: str
    body: bytes | None
    body_error: str | None


# Name → type in Spark, what it is of a row.
COLUMNS: dict[str, tuple[str, Callable[[Row], Any]]] = {
    "topic": ("STRING", lambda row: row.topic),
    "broker": ("STRING", lambda row: row.broker_name),
    "queue": ("INT", lambda row: row.message.queue_id),
    "offset": ("BIGINT", lambda row: row.message.queue_offset),
    "message_id": ("STRING", lambda row: row.message.offset_message_id),
    "unique_key": ("STRING", lambda row: row.message.unique_key),
    "keys": ("ARRAY<STRING>", lambda row: row.message.keys),
    "tags": ("STRING", lambda row: row.message.tags),
    "properties": ("MAP<STRING, STRING>", lambda row: list(row.message.properties.items())),
    "body": ("BINARY", lambda row: row.body),
    "body_error": ("STRING", lambda row: row.body_error),
    "born_at": ("TIMESTAMP", lambda row: _micros(row.message.born_timestamp_ms)),
    "stored_at": ("TIMESTAMP", lambda row: _micros(row.message.store_timestamp_ms)),
    "born_host": ("STRING", lambda row: _address(row.message.born_host)),
    "reconsume_times": ("INT", lambda row: row.message.reconsume_times),
}
SCHEMA = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())


def type_of(name: str) -> str:
    """Returns the type of a column as Spark writes it itself (`simpleString`)."""
    return COLUMNS[name][0].lower().replace(" ", "")


def readers(names: Sequence[str]) -> list[Callable[[Row], Any]]:
    """Returns how the named columns are read. Raises OptionError for one that there is not."""
    unknown = [name for name in names if name not in COLUMNS]
    if unknown:
        raise OptionError(f"the schema names the column {unknown[0]!r}; there are: {', '.join(COLUMNS)}")
    return [COLUMNS[name][1] for name in names]


def row(message: StoredMessage, broker_name: str, namespace: str) -> Row:
    body: bytes | None = None
    error: str | None = None
    try:
        body = decompress(message.body, message.sys_flag)
    except BodyError as bad:
        error = str(bad)
    return Row(message, broker_name, without_namespace(namespace, message.topic), body, error)


def record_batch(rows: Iterable[Row], schema: pa.Schema) -> pa.RecordBatch:
    """Returns rows as Arrow has them, with the columns of `schema`."""
    import pyarrow as pa  # half a second, and only where messages are read

    known = list(rows)
    values = [[read(one) for one in known] for read in readers(schema.names)]
    arrays = [pa.array(column, type=field.type) for column, field in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _address(host: Host) -> str:
    return f"{host[0]}:{host[1]}"


def _micros(ms: int) -> int | None:
    return ms * 1000 if _MS_MIN <= ms <= _MS_MAX else None
