"""Writes a day of the history of lag as a cluster of that size would have it: packed rows, from a seed.

A sample is one queue at one moment. Groups have one of five shapes, by their number:

    steady    an even stream, consumed as it comes                      50 %
    daily     a stream that follows the day, at noon more than it can   30 %
    bursts    nothing, then a minute of a lot, at times of its own      10 %
    stalled   members online, and from some hour on nothing consumed     5 %
    dead      nobody online and nothing comes                            5 %

Every group has a retry topic, too, for one group in twenty with messages. A row is written where something changed, as
the console does; each hour begins with all groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa

from mqadmin.reports.history import LAG, ROWS_PER_GROUP, History

CLUSTER = "bench"
CYCLE_S = 30
CYCLES_PER_HOUR = 3600 // CYCLE_S
HOURS = 24
SHAPES = ("steady", "daily", "bursts", "stalled", "dead")
_SHARES = np.array([0.50, 0.30, 0.10, 0.05, 0.05])
_VERDICTS = np.array(["ok", "slow", "ok", "stalled", "quiet"])


@dataclass(frozen=True, slots=True)
class Written:
    """`samples`: queues times cycles. `rows`: of the files, in which only changes are."""

    samples: int
    rows: int
    size_bytes: int


def write_day(history: History, day: date, groups: int, queues: int = 8, seed: int = 7) -> Written:
    """Writes the 24 files of a day."""
    cluster = _Cluster(groups, queues, seed)
    midnight = datetime.combine(day, datetime.min.time(), UTC)
    row_count = size_bytes = 0
    for hour in range(HOURS):
        begin = midnight + timedelta(hours=hour)
        with history.writing("lag", CLUSTER, begin, is_complete=True) as writer:
            for table in cluster.hour(hour, int(begin.timestamp())):
                writer.write_table(table, row_group_size=ROWS_PER_GROUP)
                row_count += table.num_rows
        size_bytes += history.path("lag", CLUSTER, begin).stat().st_size
    return Written(groups * queues * HOURS * CYCLES_PER_HOUR, row_count, size_bytes)


class _Cluster:
    """Offsets of all queues, from cycle to cycle; arrays are groups × queues."""

    def __init__(self, groups: int, queues: int, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._shape = self._random.choice(len(SHAPES), groups, p=_SHARES)
        self._rate = self._random.lognormal(3.0, 1.2, (groups, 1)) * self._random.uniform(0.5, 1.5, (groups, queues))
        self._phase = self._random.integers(0, HOURS * CYCLES_PER_HOUR, groups)
        self._ends = self._random.integers(0, 10**9, (groups, queues))
        self._committed = self._ends.copy()
        self._behind_since_ms = np.zeros((groups, queues), np.int64)
        self._names = pa.array([f"group-{number:05}" for number in range(groups)])
        self._topics = pa.array([f"topic-{number // 4:05}" for number in range(groups)])
        self._brokers = pa.array([f"broker-{'abcd'[number % 4]}" for number in range(queues)])
        self._retried = np.zeros(groups, np.int64)

    def hour(self, hour: int, begin_s: int) -> list[pa.Table]:
        """Returns the rows of an hour, a table for each ten cycles."""
        groups = len(self._shape)
        cycles = []
        for number in range(CYCLES_PER_HOUR):
            at_s = begin_s + number * CYCLE_S
            cycles.append((at_s, *self._next(hour * CYCLES_PER_HOUR + number, at_s * 1000)))
        end_s = begin_s + 3600
        # Until when each row holds is known from its end: the next cycle in which its group changed.
        until = np.full(groups, end_s)
        tables = []
        for at_s, changed, ends, committed, waiting in reversed(cycles):
            chosen = np.ones(groups, bool) if at_s == begin_s else changed
            tables.append(self._table(np.flatnonzero(chosen), at_s, until, ends, committed, waiting))
            until[chosen] = at_s
        tables.append(self._retries(begin_s, end_s))
        tables.reverse()
        return [pa.concat_tables(tables[number : number + 10]) for number in range(0, len(tables), 10)]

    def _next(self, cycle: int, at_ms: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        day_share = cycle / (HOURS * CYCLES_PER_HOUR)
        wave = 1 + 0.9 * np.sin(2 * np.pi * (day_share - 0.25))
        is_burst = (cycle + self._phase) % (3 * CYCLES_PER_HOUR) < 2
        is_stalled = cycle > self._phase
        share = np.choose(self._shape, [1.0, wave, np.where(is_burst, 60.0, 0.0), 1.0, 0.0])[:, None]
        came = self._random.poisson(self._rate * share)
        limit = np.choose(self._shape, [1.5, 1.7, 5.0, 1.5, 0.0])[:, None] * self._rate
        room = np.where(((self._shape == 3) & is_stalled)[:, None], 0, limit.astype(np.int64))
        ends = self._ends + came
        # What came within the last seconds is on its way.
        reach = ends - came // 8
        committed = np.maximum(self._committed, np.minimum(self._committed + room, reach))
        changed = ((ends != self._ends) | (committed != self._committed)).any(axis=1)
        is_behind = committed < ends
        moved = committed > self._committed
        since = np.where(moved | (self._behind_since_ms == 0), at_ms - 4000, self._behind_since_ms)
        self._behind_since_ms = np.where(is_behind, since, 0)
        self._ends, self._committed = ends, committed
        return changed, ends, committed, self._behind_since_ms

    def _table(
        self,
        chosen: np.ndarray,
        at_s: int,
        until: np.ndarray,
        ends: np.ndarray,
        committed: np.ndarray,
        waiting: np.ndarray,
    ) -> pa.Table:
        queues = ends.shape[1]
        shape = self._shape[chosen]
        numbers = np.tile(np.arange(queues, dtype=np.int32), len(chosen))
        return _packed(
            self._names.take(pa.array(chosen)),
            self._topics.take(pa.array(chosen)),
            np.full(len(chosen), at_s),
            until[chosen],
            _VERDICTS[shape],
            np.where(shape == 4, 0, 4),
            self._brokers.take(pa.array(numbers)),
            numbers,
            (committed[chosen], ends[chosen], waiting[chosen]),
        )

    def _retries(self, begin_s: int, end_s: int) -> pa.Table:
        groups = len(self._retried)
        before = self._retried
        self._retried = before + np.where(np.arange(groups) % 20 == 0, self._random.poisson(30.0, groups), 0)
        one = self._retried[:, None]
        return _packed(
            self._names,
            pa.array([f"%RETRY%{name}" for name in self._names.to_pylist()]),
            np.full(groups, begin_s),
            np.full(groups, end_s),
            _VERDICTS[self._shape],
            np.where(self._shape == 4, 0, 4),
            pa.array(["broker-a"] * groups),
            np.zeros(groups, np.int32),
            (one, one, np.zeros_like(one)),
        )


def _packed(
    names: pa.Array,
    topics: pa.Array,
    at_s: np.ndarray,
    until_s: np.ndarray,
    verdicts: np.ndarray,
    members: np.ndarray,
    brokers: pa.Array,
    queues: np.ndarray,
    offsets: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> pa.Table:
    count = len(names)
    width = len(queues) // count if count else 0
    bounds = pa.array(np.arange(count + 1, dtype=np.int32) * width)

    def packed(values: pa.Array) -> pa.Array:
        return pa.ListArray.from_arrays(bounds, values)

    time = LAG.field("at").type
    committed, ends, waiting = (pa.array(one.ravel(), pa.int64()) for one in offsets)
    columns = [
        pa.repeat(pa.scalar(CLUSTER), count),
        names,
        topics,
        pa.array(at_s * 1_000_000).cast(time),
        pa.array(until_s * 1_000_000).cast(time),
        pa.array(verdicts),
        pa.array(members, pa.int32()),
        packed(brokers),
        packed(pa.array(queues, pa.int32())),
        packed(committed),
        packed(ends),
        packed(waiting),
        packed(pa.array(np.zeros(count * width, np.int32))),
    ]
    return pa.Table.from_arrays([one.cast(field.type) for one, field in zip(columns, LAG, strict=True)], schema=LAG)
