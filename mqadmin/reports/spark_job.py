"""The report of one cluster and one day on Spark: reads the history, goes through the steps, writes the result.

The result is Parquet in a folder of the run's own; which folder counts is said by a row of the database that is written
last (`keeping.py`), so a run that fails or is killed anywhere leaves what was there before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqadmin.reports import steps
from mqadmin.reports.history import BadHistory, History

if TYPE_CHECKING:
    from datetime import date

    from pyspark.sql import DataFrame, SparkSession

# What the columns of the history are to Spark; without a schema it would open every file to find out.
LAG_DDL = (
    "cluster STRING, consumer_group STRING, topic STRING, at TIMESTAMP, until TIMESTAMP, verdict STRING, members INT, "
    "brokers ARRAY<STRING>, queues ARRAY<INT>, committed ARRAY<BIGINT>, ends ARRAY<BIGINT>, "
    "waiting_since_ms ARRAY<BIGINT>, doubt_ms ARRAY<INT>"
)
# The same weekday.
BEFORE = timedelta(days=7)
GROUPS, QUEUES = "groups", "queues"


@dataclass(frozen=True, slots=True)
class Unit:
    """What one report is about. `objective_s`: for how long the oldest message of a group may wait."""

    cluster: str
    day: date
    objective_s: int


def make(spark: SparkSession, history: History, unit: Unit, folder: Path) -> None:
    """Writes the figures of the groups and of their queues into `folder`. Raises BadHistory."""
    lag = _read(spark, history, unit.cluster, unit.day)
    queues = steps.queue_days(lag).cache()
    days = _days(lag, unit.objective_s)
    before = _days(_read(spark, history, unit.cluster, unit.day - BEFORE), unit.objective_s)
    grown = steps.with_growth(days, steps.hot_queues(queues), before)
    grown.coalesce(1).write.parquet(str(folder / GROUPS))
    queues.coalesce(1).write.parquet(str(folder / QUEUES))
    queues.unpersist()


def rows(spark: SparkSession, folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the groups' figures of a result, as plain values."""
    for one in spark.read.parquet(str(folder / GROUPS)).toLocalIterator():
        yield one.asDict(recursive=True)


def _days(lag: DataFrame, objective_s: int) -> DataFrame:
    topics = steps.topic_spans(lag)
    spans = steps.group_spans(topics, objective_s * 1000)
    return steps.group_days(spans, steps.group_hours(spans, steps.flows(topics)))


def _read(spark: SparkSession, history: History, cluster: str, day: date) -> DataFrame:
    """Returns a day of the history of a cluster, without rows where there is none. Raises BadHistory."""
    paths = [str(path) for path in history.check(day) if path.stem == cluster]
    if not paths:
        return spark.createDataFrame([], LAG_DDL)
    return spark.read.schema(LAG_DDL).parquet(*paths)


__all__ = ["BEFORE", "GROUPS", "LAG_DDL", "QUEUES", "BadHistory", "Unit", "make", "rows"]
