"""Two days of history on which something happened to groups, a week apart, and their results on Spark: for looking at
what reports draw of them.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.lag_samples import CLUSTER, write_day
from bench.report_facts import name, write_facts
from mqadmin.reports import keeping, spark_job
from mqadmin.reports.history import LAG, History

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUPS = [name(number) for number in range(21)]
# Its first queue alone lags, by so much; the day before it had nothing of the kind.
HOT, HOT_LAG = GROUPS[2], 700
# Of what it retries a tenth dies.
DYING = GROUPS[0]
_HOURS = 24
_EVERY = timedelta(minutes=5)


def write_days(data: Path, days: tuple[date, date]) -> None:
    """Writes the earlier and the later day; on the later one a queue is hot, messages die, and much is told."""
    history = History(data / "history")
    for seed, day in enumerate(days, start=7):
        write_day(history, day, len(GROUPS), queues=4, seed=seed)
        for hour in range(_HOURS):
            _rewrite(history, datetime(day.year, day.month, day.day, hour, tzinfo=UTC), is_later=day == days[1])
    write_facts(history, data / "not-used", days[1], len(GROUPS))


def _rewrite(history: History, begin: datetime, *, is_later: bool) -> None:
    rows = _thinned(pq.read_table(history.path("lag", CLUSTER, begin)).to_pylist())
    if is_later:
        for row in rows:
            if row["consumer_group"] == HOT and not row["topic"].startswith("%"):
                _make_hot(row)
        rows += [_dead(row) for row in rows if row["topic"] == f"%RETRY%{DYING}"]
    with history.writing("lag", CLUSTER, begin, is_complete=True) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema=LAG))


def _thinned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns of each group and topic a sample every _EVERY, which holds until the next one: Spark has less to do."""
    last: dict[tuple[str, str], dict[str, Any]] = {}
    kept = []
    for row in sorted(rows, key=itemgetter("at")):
        key = row["consumer_group"], row["topic"]
        before = last.get(key)
        if before is not None and row["at"] - before["at"] < _EVERY:
            before["until"] = row["until"]
            continue
        last[key] = row
        kept.append(row)
    return kept


def compute_days(spark: SparkSession, data: Path, days: tuple[date, date]) -> dict[str, str]:
    """Computes the days; returns where the result of each lies."""
    earlier: dict[date, Path] = {}
    for day in days:
        folder = keeping.day_folder(data / "reports" / "v1", CLUSTER, day) / "run-1"
        spark_job.make(spark, History(data / "history"), spark_job.Unit(CLUSTER, day, (), dict(earlier)), folder)
        earlier[day] = folder
    return {str(day): str(folder) for day, folder in earlier.items()}


def _make_hot(row: dict[str, Any]) -> None:
    ends, count = row["ends"], len(row["ends"])
    row["committed"] = [ends[0] - HOT_LAG, *ends[1:]]
    since = row["at"] - timedelta(minutes=2)
    row["waiting_since_ms"] = [int(since.timestamp() * 1000)] + [0] * (count - 1)


def _dead(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the sample of the dead letters at that moment."""
    count = [end // 10 for end in row["ends"]]
    return row | {"topic": f"%DLQ%{DYING}", "ends": count, "committed": count}
