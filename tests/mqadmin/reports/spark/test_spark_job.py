"""One report from the history to its Parquet, held against the days before."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from mqadmin.reports.history import SCHEMAS, BadHistory, History
from mqadmin.reports.judging import Judged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DAY = date(2026, 11, 22)
BEGIN = datetime(2026, 11, 22, tzinfo=UTC)


def write(history: History, kind: str, at: datetime, rows: list[dict[str, Any]], cluster: str = "c") -> Path:
    with history.writing(kind, cluster, at, is_complete=True) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema=SCHEMAS[kind]))
    return history.path(kind, cluster, at)


def sample(at: datetime, minutes: int, end: int, committed: int, since: datetime | None = None) -> dict[str, Any]:
    return {
        "cluster": "c", "consumer_group": "billing", "topic": "orders", "at": at,
        "until": at + timedelta(minutes=minutes), "verdict": "ok", "members": 1, "brokers": ["a"], "queues": [0],
        "committed": [committed], "ends": [end],
        "waiting_since_ms": [0 if since is None else int(since.timestamp() * 1000)], "doubt_ms": [0],
    }  # fmt: skip


def made(spark: SparkSession, history: History, folder: Path, day: date, **more: Any) -> dict[str, Any]:
    from mqadmin.reports import spark_job  # needs PySpark

    spark_job.make(spark, history, spark_job.Unit("c", day, **more), folder)
    (row,) = spark_job.rows(spark, folder)
    return row


def test_a_report_has_the_figures_of_its_day_and_of_the_week_before(spark: SparkSession, tmp_path: Path) -> None:
    history, week = History(tmp_path / "history"), timedelta(days=7)
    write(history, "lag", BEGIN - week, [sample(BEGIN - week, 30, 0, 0), sample(BEGIN - week + week / 336, 30, 60, 60)])
    write(history, "lag", BEGIN, [sample(BEGIN, 30, 60, 60), sample(BEGIN + week / 336, 30, 180, 60, BEGIN)])
    write(history, "lag", BEGIN, [sample(BEGIN, 30, 9, 0)], cluster="other")
    moved = {"cluster": "c", "consumer_group": "billing", "at": BEGIN, "kind": "queues_moved", "client_id": "m",
             "moved_queues": 8, "source": "watch"}  # fmt: skip
    write(history, "rebalances", BEGIN, [moved])
    took = {"cluster": "c", "consumer_group": "billing", "at": BEGIN, "topic": "orders", "from_ms": [10, 80],
            "to_ms": [11, 81], "counts": [99, 1]}  # fmt: skip
    write(history, "deliveries", BEGIN, [took])
    made(spark, history, tmp_path / "before", DAY - week)
    strict = Judged("billing", 0, 2**62, 3_000_000, None)
    row = made(spark, history, tmp_path / "now", DAY, objectives=[strict], earlier={DAY - week: tmp_path / "before"})
    assert (row["produced"], row["produced_before"], row["growth"]) == (120, 60, 2.0)
    assert row["over_ms"] == 600_000, "fifty minutes are allowed to it"
    assert (row["rebalance_count"], row["moved_queues"], row["anomalies"], row["forecast_in_s"]) == (1, 8, None, None)
    assert (row["delivered"], row["delivery_p50_ms"], row["deliveries"][0]["topic"]) == (100, 10, "orders")
    assert {path.name for path in (tmp_path / "now").iterdir()} == {"groups", "queues", "hours"}


def test_results_of_other_days_are_one_table_that_has_the_number_of_each_day(
    spark: SparkSession, tmp_path: Path
) -> None:
    from mqadmin.reports import spark_job  # needs PySpark

    earlier = {DAY - timedelta(days=number): tmp_path / f"day {number}%" / f"run-{number}" for number in (1, 2, 9)}
    for number, folder in zip((1, 2, 9), earlier.values(), strict=True):
        (folder / "groups").mkdir(parents=True)
        rows = [{"cluster": "c", "consumer_group": one, "peak_in_s": number / 2, "peak_out_s": 1.0} for one in "ab"]
        pa.parquet.write_table(pa.Table.from_pylist(rows), folder / "groups" / "part-0.parquet")
    unit = spark_job.Unit("c", DAY, earlier=earlier)
    since = DAY - timedelta(days=2)
    found = spark_job.results_of_days(spark, unit, "groups", spark_job.DAY_DDL, lambda day: day >= since).collect()
    assert sorted((one.day - DAY.toordinal(), one.consumer_group, one.peak_in_s) for one in found) == [
        (-2, "a", 1.0), (-2, "b", 1.0), (-1, "a", 0.5), (-1, "b", 0.5),
    ]  # fmt: skip
    none = spark_job.results_of_days(spark, unit, "groups", spark_job.DAY_DDL, lambda _: False)
    assert none.columns == found[0].__fields__
    assert none.collect() == []


def test_samples_of_another_time_are_left_out_and_found(spark: SparkSession, tmp_path: Path) -> None:
    history = History(tmp_path)
    ahead = BEGIN + timedelta(days=400)
    path = write(history, "lag", BEGIN, [sample(BEGIN, 60, 5, 5), sample(ahead, 60, 999, 0)])
    assert made(spark, history, tmp_path / "now", DAY)["lag_max"] == 0
    assert history.strays("c", DAY) == [path]


def test_the_last_sample_of_a_day_counts_to_its_end(spark: SparkSession, tmp_path: Path) -> None:
    """The next one is of the first cycle of the next day, which begins when it begins."""
    history, last = History(tmp_path), BEGIN + timedelta(hours=23, minutes=1)
    held_to_next_cycle = {**sample(last, 59, 5, 5), "until": BEGIN + timedelta(days=1, seconds=20)}
    write(history, "lag", last, [held_to_next_cycle])
    assert made(spark, history, tmp_path / "now", DAY)["known_ms"] == 59 * 60_000
    assert history.strays("c", DAY) == []


def test_a_file_that_is_none_of_ours_is_named(spark: SparkSession, tmp_path: Path) -> None:
    from mqadmin.reports import spark_job  # needs PySpark

    history = History(tmp_path)
    path = write(history, "lag", BEGIN, [sample(BEGIN, 60, 5, 5)])
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(BadHistory, match="cannot be read"):
        spark_job.make(spark, history, spark_job.Unit("c", DAY), tmp_path / "now")
    pa.parquet.write_table(pa.table({"something": ["else"]}), path)
    with pytest.raises(BadHistory, match="other columns"):
        spark_job.make(spark, history, spark_job.Unit("c", DAY), tmp_path / "now")
    assert not (tmp_path / "now").exists()
