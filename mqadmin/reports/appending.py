"""Appends the hot window to the history, hour by hour. Again it writes the same, or what is new of an open hour.

A sample holds until the next one of its group and topic, the first of the next hour included, or until a gap begins, so
each row of the history says from when to when it is true and can be read by itself.

How far the history is stands in `SamplingState`: what it has not is kept in the hot window for longer, for four days
(`mqadmin/lag/retention.py`). What had to go then is told by a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from mqadmin.clusters.models import Cluster
from mqadmin.lag import hot_window
from mqadmin.lag.gone_groups import GroupGone
from mqadmin.lag.hot_window import BrokersBack, Gap, TopicSample, gaps, samples
from mqadmin.lag.models import SamplingState, SpanState
from mqadmin.lag.packing import QueueSample
from mqadmin.lag.retention import HOUR_S, UNAPPENDED_FOR_S
from mqadmin.reports import late_data
from mqadmin.reports.history import GAPS, LAG, LOST, NEXT_CYCLE, ROWS_PER_GROUP, History, hour_of

_HOUR = timedelta(hours=1)
# The hot window reaches back no further.
HOURS_MAX = UNAPPENDED_FOR_S // HOUR_S
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
    state, _ = SamplingState.objects.get_or_create(cluster=cluster)
    first_s = hot_window.oldest_s(cluster)
    done_s = _append_lost(history, cluster, state, now)
    row_count = 0
    try:
        for number, hour in enumerate(hours := _hours(first_s, now)):
            done_s = _seconds(hour) if done_s is None else done_s
            if not history.is_complete(cluster.name, hour):
                row_count += append_hour(history, cluster, hour, now)
            if now >= hour + _HOUR + NEXT_CYCLE:
                done_s = _seconds(hour + _HOUR)
            told((number + 1) / len(hours))
    finally:
        SamplingState.objects.filter(pk=state.pk).update(appended_until_s=done_s)
    return row_count


def _hours(first_s: int | None, now: datetime) -> list[datetime]:
    """Returns the hours of the window since its first sample, the open one included."""
    if first_s is None:
        return []
    oldest = max(hour_of(datetime.fromtimestamp(first_s, UTC)), hour_of(now) - HOURS_MAX * _HOUR)
    return [oldest + number * _HOUR for number in range((hour_of(now) - oldest) // _HOUR + 1)]


def _append_lost(history: History, cluster: Cluster, state: SamplingState, now: datetime) -> int | None:
    """Writes as gaps the hours that were removed before they were appended; returns up to when all is told."""
    since_s, until_s = state.appended_until_s, state.lost_until_s
    if since_s is None or since_s >= until_s:
        return since_s
    for at_s in range(since_s, until_s, HOUR_S):
        hour = datetime.fromtimestamp(at_s, UTC)
        if history.is_complete(cluster.name, hour):
            continue
        late_data.note(cluster, hour.date(), now)
        # Of an hour that was open at the last append, what came after that is lost.
        told = _told_gaps(history, cluster, hour)
        begin_s = next((gap.at_s for gap in told if gap.state == OPEN), at_s)
        told = [gap for gap in told if gap.state not in (OPEN, LOST)]
        with history.writing("gaps", cluster.name, hour, is_complete=True) as writer:
            writer.write_table(_gap_table(cluster.name, [*told, Gap(begin_s, at_s + HOUR_S, LOST, "")]))
    return until_s


def _told_gaps(history: History, cluster: Cluster, hour: datetime) -> list[Gap]:
    try:
        rows = pq.read_table(history.path("gaps", cluster.name, hour), partitioning=None).to_pylist()
    except (pa.ArrowException, OSError):
        return []
    return [Gap(_seconds(row["at"]), _seconds(row["until"]), row["state"], row["note"]) for row in rows]


def append_hour(history: History, cluster: Cluster, hour: datetime, now: datetime) -> int:
    """Writes the file of one hour anew; returns how many rows it has. An hour without any sample gets no file."""
    end = hour + timedelta(hours=1)
    horizon = min(end + NEXT_CYCLE, now)
    is_complete = horizon == end + NEXT_CYCLE
    found = spans(samples(cluster, hour, horizon), _seconds(end), _seconds(horizon))
    first = next(found, None)
    if first is None:
        return 0
    late_data.note(cluster, hour.date(), now)
    missing = list(gaps(cluster, hour, min(end, now)))
    if now < end:
        missing.append(Gap(_seconds(now), _seconds(end), OPEN, ""))
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


def spans(events: Iterable[TopicSample | Gap | GroupGone | BrokersBack], end_s: int, horizon_s: int) -> Iterator[Span]:
    """Yields each sample that was taken before `end_s` with until when it held; those that held for no time are not.

    `events` reach to `horizon_s`: what comes after `end_s` only ends what was before, as does a sample without queues,
    of a topic that its group reads no longer. A gap in which some brokers did not answer ends nothing of the others; of
    their own queues no offset is known until they are back.
    """
    held = _Held()
    for one in events:
        match one:
            case TopicSample():
                ended = held.take(one, is_kept=one.at_s < end_s and bool(one.queues))
            case GroupGone():
                ended = held.forget(one.group_id)
            case BrokersBack():
                ended = held.see(frozenset(), one.at_s)
            case Gap(state=SpanState.PARTIAL):
                ended = held.see(frozenset(one.brokers), one.at_s)
            case Gap():
                ended = held.forget()
        yield from (Span(sample, one.at_s) for sample in ended if sample.at_s < one.at_s)
    last_s = min(end_s, horizon_s)
    yield from (Span(sample, last_s) for sample in held.forget() if sample.at_s < last_s)


class _Held:
    """What was sampled last of each topic of each group, and as what it is known: without the brokers that are silent.

    Each method returns what does not hold any more.
    """

    def __init__(self) -> None:
        self._sampled: dict[tuple[int, str], TopicSample] = {}
        self._known: dict[tuple[int, str], TopicSample] = {}
        self._silent: frozenset[str] = frozenset()

    def take(self, sample: TopicSample, *, is_kept: bool) -> list[TopicSample]:
        """Puts a sample in the place of the last one of its topic; one that `is_kept` not only ends that."""
        key = sample.group_id, sample.topic
        ended = self._known.pop(key, None)
        self._sampled.pop(key, None)
        if is_kept:
            self._sampled[key], self._known[key] = sample, _without(sample, self._silent)
        return [] if ended is None else [ended]

    def see(self, silent: frozenset[str], at_s: int) -> list[TopicSample]:
        """Knows from now on nothing of these brokers, and all of the others again."""
        self._silent, ended = silent, []
        for key, sample in self._sampled.items():
            known = _without(sample, silent)
            if known.queues != self._known[key].queues:
                ended.append(self._known[key])
                self._known[key] = known._replace(at_s=at_s)
        return ended

    def forget(self, group_id: int | None = None) -> list[TopicSample]:
        """Forgets a group, or all."""
        gone = [key for key in self._known if group_id in (None, key[0])]
        for key in gone:
            del self._sampled[key]
        return [self._known.pop(key) for key in gone]


def _without(sample: TopicSample, silent: frozenset[str]) -> TopicSample:
    """Returns a sample in which of the queues of these brokers nothing is known."""
    if not any(queue.broker_name in silent for queue in sample.queues):
        return sample
    queues = (
        QueueSample(queue.broker_name, queue.queue_id, None, None, None, None) if queue.broker_name in silent else queue
        for queue in sample.queues
    )
    return sample._replace(queues=tuple(queues))


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


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _us(seconds: int) -> int:
    return seconds * 1_000_000
