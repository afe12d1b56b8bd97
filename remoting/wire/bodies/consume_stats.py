"""Progress of groups: 208 (ConsumeStats), 303 (time spans), 308 (corrections) and 43 (all committed offsets).

Offsets here are queue offsets; `consumer_offset` is the next to consume, `broker_offset` the next to be written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from remoting.wire.bodies.document import Document, convert, read_object
from remoting.wire.bodies.message_queue import (
    MessageQueue,
    queue_from_json,
    queue_to_json,
    read_queue_map,
    write_queue_map,
)
from remoting.wire.command import Body
from remoting.wire.errors import BodyError


class QueueProgress(Document, kw_only=True):
    """`OffsetWrapper`. `last_timestamp`: ms, store time of the last consumed message; `pull_offset` since 5.1."""

    broker_offset: int = 0
    consumer_offset: int = 0
    last_timestamp: int = 0
    pull_offset: int | None = None


class QueueTimeSpan(Document, kw_only=True):
    """One queue of 303: store times in ms, -1 where there is no message; `delay_time` in ms."""

    min_time_stamp: int = -1
    max_time_stamp: int = -1
    consume_time_stamp: int = -1
    delay_time: int = 0


class ConsumeStats(msgspec.Struct, kw_only=True):
    """`consume_tps`: messages a second over the last minute."""

    consume_tps: float = 0.0
    queues: dict[MessageQueue, QueueProgress] = {}


def write_consume_stats(stats: ConsumeStats) -> bytes:
    """Encodes the response to GET_CONSUME_STATS (208)."""
    return msgspec.json.encode({"consumeTps": stats.consume_tps, "offsetTable": write_queue_map(stats.queues.items())})


def read_consume_stats(body: Body) -> ConsumeStats:
    """Reads the response to GET_CONSUME_STATS (208). Raises BodyError."""
    return consume_stats_from(read_object("ConsumeStats", body))


def consume_stats_from(value: dict[str, Any]) -> ConsumeStats:
    """Converts a JSON object as 208 and 317 have it. Raises BodyError."""
    table = read_queue_map(value.get("offsetTable"))
    return ConsumeStats(
        consume_tps=convert(float, value.get("consumeTps", 0.0)),
        queues={queue: convert(QueueProgress, item) for queue, item in table.items()},
    )


def write_time_spans(spans: Mapping[MessageQueue, QueueTimeSpan]) -> bytes:
    """Encodes the response to QUERY_CONSUME_TIME_SPAN (303)."""
    entries = [msgspec.to_builtins(span) | {"messageQueue": queue_to_json(queue)} for queue, span in spans.items()]
    return msgspec.json.encode({"consumeTimeSpanSet": entries})


def read_time_spans(body: Body) -> dict[MessageQueue, QueueTimeSpan]:
    """Reads the response to QUERY_CONSUME_TIME_SPAN (303). Raises BodyError."""
    spans = read_object("QueryConsumeTimeSpanBody", body).get("consumeTimeSpanSet", [])
    return {
        queue_from_json(span.get("messageQueue")): convert(QueueTimeSpan, span)
        for span in convert(list[dict[str, Any]], spans)
    }


def read_corrections(body: Body) -> dict[int, int]:
    """Reads the response to QUERY_CORRECTION_OFFSET (308): queue id → queue offset. Raises BodyError."""
    return convert(dict[int, int], read_object("QueryCorrectionOffsetBody", body).get("correctionOffsets", {}))


# Committed offsets: (topic, group) → queue id → queue offset.
CommittedOffsets = dict[tuple[str, str], dict[int, int]]


def write_committed_offsets(offsets: Mapping[tuple[str, str], Mapping[int, int]]) -> bytes:
    """Encodes the response to 43, and config/consumerOffset.json; the key is `topic@group`, topic first."""
    table = {f"{topic}@{group}": queues for (topic, group), queues in offsets.items()}
    return msgspec.json.encode({"offsetTable": table})


def read_committed_offsets(body: Body) -> CommittedOffsets:
    """Reads the response to 43. Raises BodyError. Topics may hold no `@`, so the first one separates."""
    value = read_object("ConsumerOffsets", body)
    table = convert(dict[str, dict[int, int]], value.get("offsetTable", {}))
    offsets: CommittedOffsets = {}
    for key, queues in table.items():
        topic, separator, group = key.partition("@")
        if not separator:
            raise BodyError(f"offset table key {key!r} is not topic@group")
        offsets[topic, group] = queues
    return offsets
