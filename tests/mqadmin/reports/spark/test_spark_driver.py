"""The session on a JVM that we start ourselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_session_computes_and_its_times_are_utc(spark: SparkSession) -> None:
    (row,) = spark.range(1_000).selectExpr("sum(id) AS total", "hour(timestamp_seconds(0)) AS hour").collect()
    assert (row.total, row.hour) == (499_500, 0)
