"""The whole job on a generated day: figures that PyArrow can check, whatever the number of tasks."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bench.lag_samples import CLUSTER, write_day
from mqadmin.reports.history import History
from mqadmin.reports.progress import STAGES_USUAL
from mqadmin.reports.spark_driver import stages_so_far

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
DAY = date(2026, 11, 22)
GROUPS = 12


def model(history: History) -> dict[str, dict[str, int]]:
    """What came into a group's topics by hour and in all, and the most lag that one of them had."""
    table = pa.concat_tables(pq.read_table(path, partitioning=None) for path in history.check("lag", CLUSTER, DAY))
    found: dict[str, dict[str, int]] = {}
    for name in pc.unique(table["consumer_group"]).to_pylist():
        rows = table.filter(pc.equal(table["consumer_group"], name)).sort_by("at").to_pylist()
        normal = [row for row in rows if not row["topic"].startswith("%")]
        ends = [sum(row["ends"]) for row in normal]
        lags = [sum(row["ends"]) - sum(row["committed"]) for row in normal]
        retried = [sum(row["ends"]) for row in rows if row["topic"].startswith("%RETRY%")]
        found[name] = {"produced": ends[-1] - ends[0], "lag_max": max(lags), "retried": retried[-1] - retried[0]}
    return found


def figures(spark: SparkSession, history: History, folder: Path) -> dict[str, dict[str, Any]]:
    from mqadmin.reports import spark_job  # only where pyspark is installed

    spark_job.make(spark, history, spark_job.Unit(CLUSTER, DAY), folder)
    return {row["consumer_group"]: row for row in spark_job.rows(spark, folder)}


def test_a_generated_day_is_reported_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    from mqadmin.reports import spark_job  # only where pyspark is installed

    history = History(tmp_path / "history")
    written = write_day(history, DAY, GROUPS, queues=4)
    assert written.samples == GROUPS * 4 * 2880
    before = stages_so_far(spark).planned
    found = figures(spark, history, tmp_path / "report")
    expected = model(history)
    assert {name: {key: found[name][key] for key in expected[name]} for name in found} == expected
    assert len(list((tmp_path / "report" / spark_job.GROUPS).glob("*.parquet"))) == 1
    assert pq.read_table(tmp_path / "report" / spark_job.QUEUES).num_rows == GROUPS * 5
    stages = stages_so_far(spark)
    assert stages.open == []
    assert STAGES_USUAL / 2 < stages.planned - before < STAGES_USUAL * 2, "what a run's percent begins with"


@pytest.mark.parametrize(
    ("size_bytes", "tasks"), [(0, 4), (64 * 2**20, 4), (64 * 2**20 + 1, 5), (2 * 2**30, 128), (2**50, 1024)]
)
def test_shuffles_are_cut_by_what_is_read(size_bytes: int, tasks: int) -> None:
    from mqadmin.reports.spark_job import shuffle_tasks  # only where pyspark is installed

    assert shuffle_tasks(size_bytes) == tasks
