"""The session on a JVM that we start ourselves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mqadmin.reports.spark_driver import SparkConfig, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_session_computes_and_its_times_are_utc(spark: SparkSession) -> None:
    (row,) = spark.range(1_000).selectExpr("sum(id) AS total", "hour(timestamp_seconds(0)) AS hour").collect()
    assert (row.total, row.hour) == (499_500, 0)


def test_a_second_session_in_a_process_is_refused_and_leaves_the_first_as_it_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    config = SparkConfig("local[1]", tmp_path, driver_memory_mib=512)
    with pytest.raises(RuntimeError, match="has a Spark session already"), spark_session(config):
        pass
    assert spark.range(3).count() == 3
