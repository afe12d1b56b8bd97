"""Writes what a report reads beside the samples of its day: events, objectives, and the results of the days before.

All of it is made of a seed, and as much as groups bring with them: of ten thousand, some hundred thousand events and
seven million hours of the 28 days before. What the days before were is made up, not computed: computing it would take
28 reports.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.lag_samples import CLUSTER, HOURS
from mqadmin.reports.history import SCHEMAS, History

EARLIER_DAYS = 28
HOUR_MS = 3_600_000
# One group in so many has it.
WITH_OBJECTIVE, WITH_DEATHS, WITH_CONFLICT, TELLING = 10, 20, 200, 10
# Of these each hour of a day brings one to one group in fifty.
MOVING = 50
_BUCKETS_MS = [2**power for power in range(9)]
Row = tuple[Any, ...]


class Facts(NamedTuple):
    """How many rows were written."""

    events: int
    earlier_rows: int


def write_facts(history: History, earlier: Path, day: date, groups: int, seed: int = 11) -> Facts:
    """Writes the events of a day into the history, and the results of the days before below `earlier`."""
    random = np.random.default_rng(seed)
    return Facts(_write_events(history, day, groups, random), _write_earlier(earlier, day, groups, random))


def earlier_folders(earlier: Path) -> dict[date, Path]:
    """Returns the results of the days before, as a report is given them."""
    return {date.fromisoformat(folder.name): folder for folder in sorted(earlier.glob("*-*-*"))}


def objectives(day: date, groups: int) -> list[dict[str, Any]]:
    """Returns what was allowed to one group in ten: another time from noon on."""
    begin_ms = _midnight_ms(day)
    halves = ((0, begin_ms + 12 * HOUR_MS, 30_000), (begin_ms + 12 * HOUR_MS, 2**62, 120_000))
    return [
        {"consumer_group": name(number), "at": at, "until": until, "objective_ms": allowed_ms, "allowed_lag": 5_000}
        for number in range(0, groups, WITH_OBJECTIVE)
        for at, until, allowed_ms in halves
    ]


def name(number: int) -> str:
    """Names a group as `lag_samples` does."""
    return f"group-{number:05}"


def _write_events(history: History, day: date, groups: int, random: np.random.Generator) -> int:
    midnight, row_count = datetime.combine(day, datetime.min.time(), UTC), 0
    for hour in range(HOURS):
        begin = midnight + timedelta(hours=hour)
        for kind, rows in _events(begin, groups, random).items():
            columns = zip(*rows, strict=True) if rows else [[] for _ in SCHEMAS[kind]]
            arrays = [pa.array(list(one), field.type) for one, field in zip(columns, SCHEMAS[kind], strict=True)]
            with history.writing(kind, CLUSTER, begin, is_complete=True) as writer:
                writer.write_table(pa.Table.from_arrays(arrays, schema=SCHEMAS[kind]))
            row_count += len(rows)
    return row_count


def _events(begin: datetime, groups: int, random: np.random.Generator) -> dict[str, list[Row]]:
    """Returns the rows of an hour, each kind's."""
    moved, died = random.integers(0, groups, -(-groups // MOVING)), range(0, groups, WITH_DEATHS)
    return {
        "rebalances": [
            (CLUSTER, name(number), begin + timedelta(seconds=int(at_s)), kind, f"10.0.0.{number % 250}@7", 4, "poll")
            for number, at_s in zip(moved.tolist(), random.integers(0, 3600, len(moved)).tolist(), strict=True)
            for kind in ("lost", "joined")
        ],
        "dead_letters": [
            (CLUSTER, name(number), begin, f"topic-{number // 4:05}", "", failure, "gateway did not answer", dead)
            for number, dead in zip(died, random.integers(1, 40, len(died)).tolist(), strict=True)
            for failure in ("shop.PaymentTimeout", "KeyError")
        ],
        "conflicts": [
            (CLUSTER, name(number), begin, begin + timedelta(minutes=20), "expression", f"topic-{number // 4:05}")
            for number in range(0, groups, WITH_CONFLICT)
        ],
        "deliveries": [
            (
                *(CLUSTER, name(number), begin, f"topic-{number // 4:05}"),
                *(_BUCKETS_MS[:-1], _BUCKETS_MS[1:], random.integers(1, 1000, len(_BUCKETS_MS) - 1).tolist()),
            )
            for number in range(0, groups, TELLING)
        ],
    }


def _write_earlier(earlier: Path, day: date, groups: int, random: np.random.Generator) -> int:
    row_count = 0
    names = pa.array([name(number) for number in range(groups)])
    rate = random.lognormal(6.0, 1.2, groups)
    for number in range(1, EARLIER_DAYS + 1):
        before = day - timedelta(days=number)
        for table, rows in (("groups", _groups(names, rate, random)), ("hours", _hours(names, rate, before, random))):
            folder = earlier / f"{before:%Y-%m-%d}" / table
            folder.mkdir(parents=True)
            pq.write_table(rows, folder / "part-0.parquet", compression="zstd")
            row_count += rows.num_rows
    return row_count


def _groups(names: pa.Array, rate: np.ndarray, random: np.random.Generator) -> pa.Table:
    count = len(names)
    return pa.table(
        {
            "cluster": pa.repeat(pa.scalar(CLUSTER), count),
            "consumer_group": names,
            "peak_in_s": rate * random.uniform(0.9, 1.1, count),
            "peak_out_s": rate * random.uniform(0.9, 1.1, count),
            "produced": (rate * 86_400).astype(np.int64),
            "over_ms": random.integers(0, HOUR_MS, count),
            "lag_p95": rate * 10,
            "dead": random.integers(0, 5, count),
        }
    )


def _hours(names: pa.Array, rate: np.ndarray, day: date, random: np.random.Generator) -> pa.Table:
    of_group = np.repeat(np.arange(len(names)), HOURS)
    count = len(of_group)
    came = (rate[of_group] * 3_600 * random.uniform(0.8, 1.2, count)).astype(np.int64)
    return pa.table(
        {
            "cluster": pa.repeat(pa.scalar(CLUSTER), count),
            "consumer_group": names.take(pa.array(of_group)),
            "hour": _midnight_ms(day) + np.tile(np.arange(HOURS, dtype=np.int64) * HOUR_MS, len(names)),
            "known_ms": np.full(count, HOUR_MS, np.int64),
            "lag_mean": rate[of_group] * random.uniform(1, 3, count),
            "produced": came,
            "consumed": came,
            "retried": random.integers(0, 9, count),
            "dead": random.integers(0, 3, count),
            "members": np.full(count, 4, np.int32),
        }
    )


def _midnight_ms(day: date) -> int:
    return int(datetime.combine(day, datetime.min.time(), UTC).timestamp()) * 1000
