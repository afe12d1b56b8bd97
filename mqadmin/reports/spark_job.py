"""The report of one cluster and one day on Spark: reads the history, goes through the steps, writes the result.

The result is Parquet in a folder of the run's own; which folder counts is said by a row of the database that is written
last (`keeping.py`), so a run that fails or is killed anywhere leaves what was there before. What a day is held against
is read from the results of the days before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mqadmin.objectives.values import DEFAULT_LAG_S
from mqadmin.reports import comparing, delivery_steps, event_steps, flow_steps, queue_steps, steps
from mqadmin.reports.history import NEXT_CYCLE, History
from mqadmin.reports.judging import Judged
from mqadmin.reports.periods import day_bounds
from mqadmin.reports.step_columns import GROUP

if TYPE_CHECKING:
    from datetime import date

    from pyspark.sql import DataFrame, SparkSession

# What the columns of the history are to Spark; without a schema it would open every file to find out.
LAG_DDL = (
    "cluster STRING, consumer_group STRING, topic STRING, at TIMESTAMP, until TIMESTAMP, verdict STRING, members INT, "
    "brokers ARRAY<STRING>, queues ARRAY<INT>, committed ARRAY<BIGINT>, ends ARRAY<BIGINT>, "
    "waiting_since_ms ARRAY<BIGINT>, doubt_ms ARRAY<INT>"
)
_KEY_DDL = "cluster STRING, consumer_group STRING"
EVENT_DDL = {
    "rebalances": f"{_KEY_DDL}, at TIMESTAMP, kind STRING, client_id STRING, moved_queues INT, source STRING",
    "dead_letters": f"{_KEY_DDL}, at TIMESTAMP, origin_topic STRING, tag STRING, failure_class STRING, "
    "failure_text STRING, dead_count BIGINT",
    "conflicts": f"{_KEY_DDL}, at TIMESTAMP, until TIMESTAMP, kind STRING, topic STRING",
    "deliveries": f"{_KEY_DDL}, at TIMESTAMP, topic STRING, from_ms ARRAY<BIGINT>, to_ms ARRAY<BIGINT>, "
    "counts ARRAY<BIGINT>",
}
OBJECTIVE_DDL = "consumer_group STRING, at BIGINT, until BIGINT, objective_ms BIGINT, allowed_lag BIGINT"
# What is read of the results of other days.
DAY_DDL = f"{_KEY_DDL}, peak_in_s DOUBLE, peak_out_s DOUBLE"
BEFORE_DDL = f"{_KEY_DDL}, produced BIGINT, over_ms BIGINT, lag_p95 DOUBLE, dead BIGINT"
HOUR_DDL = (
    f"{_KEY_DDL}, hour BIGINT, known_ms BIGINT, lag_mean DOUBLE, produced BIGINT, consumed BIGINT, retried BIGINT, "
    "dead BIGINT, members INT"
)
# The same weekday.
BEFORE = timedelta(days=7)
# What is usual is asked of two weeks, where it leads of four.
USUAL_DAYS, TREND_DAYS = 14, 28
GROUPS, QUEUES, HOURS = "groups", "queues", "hours"
# Of the history's files, for one task of a shuffle: unpacked it is some 100 MB, which a heap of 2 GiB sorts without
# spilling. What is less is joined by AQE.
SHUFFLE_BYTES = 16 * 1024 * 1024
SHUFFLE_TASKS_MIN, SHUFFLE_TASKS_MAX = 4, 1024


@dataclass(frozen=True, slots=True)
class Unit:
    """What one report is about. `objectives`: what was allowed to groups that were not judged by what ships.

    `earlier`: the folders with the results of the days before, of those that have one; no two have the same name.
    """

    cluster: str
    day: date
    objectives: Sequence[Judged] = ()
    earlier: Mapping[date, Path] = field(default_factory=dict)


def make(spark: SparkSession, history: History, unit: Unit, folder: Path) -> None:
    """Writes the figures of the groups, of their queues and of their hours into `folder`. Raises BadHistory."""
    size_bytes = sum(path.stat().st_size for path in history.check("lag", unit.cluster, unit.day))
    spark.conf.set("spark.sql.shuffle.partitions", shuffle_tasks(size_bytes))
    lag = _read(spark, history, "lag", LAG_DDL, unit)
    # Shuffled once, by group and before rows are cut into changes: all that follows goes by group, too.
    topics = steps.topic_spans(lag).repartition(*GROUP)
    spans = steps.group_spans(steps.judged(topics, _objectives(spark, unit), DEFAULT_LAG_S * 1000))
    queues = _written(queue_steps.queue_days(lag), folder / QUEUES)
    hours = _written(steps.group_hours(spans, flow_steps.flows(topics)), folder / HOURS)
    figures = _joined(
        steps.group_days(spans, hours),
        steps.wait_days(steps.group_minutes(topics)),
        queue_steps.hot_queues(queues),
        queue_steps.skewed_queues(queues),
        *_compared(spark, unit, hours),
        *_events(spark, history, unit),
    )
    _written(figures, folder / GROUPS)


def _written(frame: DataFrame, folder: Path) -> DataFrame:
    """Writes a result into one file; returns it as read from there, so that what follows neither plans nor computes it.

    By a shuffle: `coalesce` would have one task do all that comes after the last one.
    """
    frame.repartition(1).write.parquet(str(folder))
    return frame.sparkSession.read.schema(frame.schema).parquet(str(folder))


def shuffle_tasks(size_bytes: int) -> int:
    """Returns into how many tasks a shuffle of so much of the history is cut."""
    return max(SHUFFLE_TASKS_MIN, min(SHUFFLE_TASKS_MAX, -(-size_bytes // SHUFFLE_BYTES)))


def rows(spark: SparkSession, folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the groups' figures of a result, as plain values."""
    for one in spark.read.parquet(str(folder / GROUPS)).toLocalIterator():
        yield one.asDict(recursive=True)


def days_needed(day: date) -> list[date]:
    """Returns the days whose results a day is held against."""
    return [day - timedelta(days=number) for number in range(1, TREND_DAYS + 1)]


def _compared(spark: SparkSession, unit: Unit, hours: DataFrame) -> tuple[DataFrame, ...]:
    """Returns what the day is held against, and what follows from that."""
    from pyspark.sql import functions as F  # takes a second to load

    number = unit.day.toordinal()
    last_week, usual_since = unit.day - BEFORE, unit.day - timedelta(days=USUAL_DAYS)
    hours_before = results_of_days(spark, unit, HOURS, HOUR_DDL, lambda day: day == last_week)
    before = results_of_days(spark, unit, GROUPS, BEFORE_DDL, lambda day: day == last_week)
    usual = results_of_days(spark, unit, HOURS, HOUR_DDL, lambda day: day >= usual_since)
    trend = results_of_days(spark, unit, GROUPS, DAY_DDL, lambda _day: True)
    today = steps.peaks(hours).select(*GROUP, F.lit(number).alias("day"), "peak_in_s", "peak_out_s")
    return (
        comparing.before(before.drop("day")),
        comparing.growth(hours, hours_before, BEFORE // timedelta(milliseconds=1)),
        comparing.anomalies(hours, usual),
        comparing.forecasts(trend.select(*today.columns).unionByName(today)),
    )


def _events(spark: SparkSession, history: History, unit: Unit) -> tuple[DataFrame, ...]:
    found = {kind: _read(spark, history, kind, ddl, unit) for kind, ddl in EVENT_DDL.items()}
    return (
        event_steps.churn(found["rebalances"]),
        event_steps.top_failures(found["dead_letters"]),
        event_steps.conflict_days(found["conflicts"]),
        delivery_steps.delivery_days(found["deliveries"]),
    )


def _joined(days: DataFrame, *others: DataFrame) -> DataFrame:
    """Each group of the day with what the other steps found of it; a group that was not sampled has no row."""
    return reduce(lambda found, other: found.join(other, on=[*GROUP], how="left"), others, days)


def _read(spark: SparkSession, history: History, kind: str, ddl: str, unit: Unit) -> DataFrame:
    """Returns a day of the history of a cluster, without rows where there is none. Raises BadHistory.

    What is not of that day (a clock that was ahead, a file that was put there) is left out. What began in it holds to
    its end at most: the last sample of a day, to the first cycle of the next.
    """
    from pyspark.sql import functions as F  # takes a second to load

    paths = [str(path) for path in history.check(kind, unit.cluster, unit.day)]
    if not paths:
        return _empty(spark, ddl)
    since, until = day_bounds(unit.day)
    found = spark.read.schema(ddl).parquet(*paths)
    found = found.where((F.col("at") >= F.lit(since)) & (F.col("at") < F.lit(until)))
    if "until" not in found.columns:
        return found
    of_day = found.where(F.col("until") <= F.lit(until + NEXT_CYCLE))
    return of_day.withColumn("until", F.least("until", F.lit(until)))


def _objectives(spark: SparkSession, unit: Unit) -> DataFrame:
    """Returns what was allowed when, as Arrow: a list of rows would be read by Python on the executors, which has them
    need a Python, and starts one."""
    if not unit.objectives:
        return _empty(spark, OBJECTIVE_DDL)
    return spark.createDataFrame(pa.Table.from_pylist([one._asdict() for one in unit.objectives]), OBJECTIVE_DDL)


def _empty(spark: SparkSession, ddl: str) -> DataFrame:
    """Returns a table of which Spark knows that it has no rows: nothing is computed of it, in no Python process."""
    columns = (column.split(maxsplit=1) for column in ddl.split(", "))
    return spark.sql(f"SELECT {', '.join(f'CAST(NULL AS {kind}) AS `{name}`' for name, kind in columns)} WHERE false")


def results_of_days(
    spark: SparkSession, unit: Unit, name: str, ddl: str, is_wanted: Callable[[date], bool]
) -> DataFrame:
    """Returns a table of the results of other days, with `day`, the number of their day.

    Read as one table: a union of 28 would be planned for longer than a small day is computed.
    """
    from pyspark.sql import functions as F  # takes a second to load

    folders = {folder: day.toordinal() for day, folder in unit.earlier.items() if is_wanted(day)}
    if not folders:
        return _empty(spark, f"{ddl}, day INT")
    # …/<folder of a result>/<name>/part-….parquet
    folder_name = F.element_at(F.split("_metadata.file_path", "/"), -3)
    numbers = F.create_map(*(F.lit(one) for folder, number in folders.items() for one in (folder.name, number)))
    found = spark.read.schema(ddl).parquet(*(str(folder / name) for folder in folders))
    return found.withColumn("day", numbers[folder_name])
