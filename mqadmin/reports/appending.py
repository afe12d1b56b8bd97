"""Appends the hot window to the history, hour by hour. Again it writes the same, or what is new of an open hour.

A sample holds until the next one of its group and topic, the first of the next hour included, or until a gap begins, so
each row of the history says from when to when it is true and can be read by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa

from mqadmin.clusters.models import Cluster
from mqadmin.lag.hot_window import Gap, TopicSample, gaps, samples
from mqadmin.lag.models import GroupSample, SpanState
from mqadmin.reports import late_data
from mqadmin.reports.history import GAPS, LAG, NEXT_CYCLE, ROWS_PER_GROUP, History, hour_of

# The hot window reaches back no further.
HOURS_MAX = 48
# The state of a gap at the end of an hour that is not over.
OPEN = "open"


class Span(NamedTuple):
    """A sample, and until when it held."""

    sample: TopicSample
    until_s: int


def unheard(_share: float) -> None:
    """Is told how far an append is where nobody asks."""


def append_due(history: History, cluster: Cluster, now: datetime, told: Callable[[float], None] = unheard) -> int:
    """Appends the hours that the history has not, the open one included; returns how many rows were written.

    `told` hears after each hour which share of them is there.
    """
    first_s = GroupSample.objects.filter(cluster=cluster).order_by("at_s").values_list("at_s", flat=True).first()
    if first_s is None:
        return 0
    oldest = max(hour_of(datetime.fromtimestamp(first_s, UTC)), hour_of(now) - timedelta(hours=HOURS_MAX))
    row_count, hour_count = 0, (hour_of(now) - oldest) // timedelta(hours=1) + 1
    for number in range(hour_count):
        hour = oldest + timedelta(hours=number)
        if not history.is_complete(cluster.name, hour):
            row_count += append_hour(history, cluster, hour, now)
        told((number + 1) / hour_count)
    return row_count


def append_hour(history: History, cluster: Cluster, hour: datetime, now: datetime) -> int:
    """Writes the file of one hour anew; returns how many rows it has. An hour without any sample gets no file."""
    end = hour + timedelta(hours=1)
    horizon = min(end + NEXT_CYCLE, now)
    is_complete = horizon == end + NEXT_CYCLE
    found = spans(samples(cluster, hour, horizon), int(end.timestamp()), int(horizon.timestamp()))
    first = next(found, None)
    if first is None:
        return 0
    late_data.note(cluster, hour.date(), now)
    missing = list(gaps(cluster, hour, min(end, now)))
    if now < end:
        missing.append(Gap(int(now.timestamp()), int(end.timestamp()), OPEN, ""))
    with history.writing("gaps", cluster.name, hour, is_complete=is_complete) as writer:
        writer.write_table(_gap_table(cluster.name, missing))
    row_count = 0
    with history.writing("lag", cluster.name, hour, is_complete=is_complete) as writer:
        rows: list[Span] = [first]
        while rows:
            rows += islice(found, ROWS_PER_GROUP - len(rows))
            writer.write_table(_lag_table(cluster.name, rows))
            row_count += len(rows)
            rows = list(islice(found, 1))
    return row_count


def spans(events: Iterable[TopicSample | Gap], end_s: int, horizon_s: int) -> Iterator[Span]:
    """Yields each sample that was taken before `end_s` with until when it held; those that held for no time are not.

    `events` reach to `horizon_s`: what comes after `end_s` only ends what was before, as does a sample without queues,
    of a topic that its group reads no longer. A gap in which some brokers did
    not answer ends nothing: the others were sampled.
    """
    held: dict[tuple[int, str], TopicSample] = {}
    for one in events:
        ended: list[TopicSample] = []
        if isinstance(one, TopicSample):
            before = held.pop((one.group_id, one.topic), None)
            if one.at_s < end_s and one.queues:
                held[one.group_id, one.topic] = one
            ended += [before] if before is not None else []
        elif one.state != SpanState.PARTIAL:
            ended += held.values()
            held.clear()
        yield from (Span(sample, one.at_s) for sample in ended if sample.at_s < one.at_s)
    last_s = min(end_s, horizon_s)
    yield from (Span(sample, last_s) for sample in held.values() if sample.at_s < last_s)


def _lag_table(cluster: str, rows: list[Span]) -> pa.Table:
    found = [span.sample for span in rows]
    columns: list[list[Any]] = [
        [cluster] * len(rows),
        [one.group for one in found],
        [one.topic for one in found],
        [_us(one.at_s) for one in found],
        [_us(span.until_s) for span in rows],
        [str(one.verdict) for one in found],
        [one.member_count for one in found],
        [[queue.broker_name for queue in one.queues] for one in found],
        [[queue.queue_id for queue in one.queues] for one in found],
        [[queue.committed_offset for queue in one.queues] for one in found],
        [[queue.max_offset for queue in one.queues] for one in found],
        [[queue.waiting_since_ms for queue in one.queues] for one in found],
        [[queue.doubt_ms for queue in one.queues] for one in found],
    ]
    return _table(LAG, columns)


def _gap_table(cluster: str, found: list[Gap]) -> pa.Table:
    columns: list[list[Any]] = [
        [cluster] * len(found),
        [_us(gap.at_s) for gap in found],
        [_us(gap.until_s) for gap in found],
        [gap.state for gap in found],
        [gap.note for gap in found],
    ]
    return _table(GAPS, columns)


def _table(schema: pa.Schema, columns: list[list[Any]]) -> pa.Table:
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _us(seconds: int) -> int:
    return seconds * 1_000_000
