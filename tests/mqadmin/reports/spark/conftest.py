"""What the tests of steps share."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mqadmin.reports.history import LAG
from mqadmin.reports.spark_job import LAG_DDL

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def history(spark: SparkSession, tmp_path: Path) -> Any:
    """Makes a history of rows, as Spark reads it from a file."""

    def make(rows: list[dict[str, Any]]) -> DataFrame:
        path = tmp_path / f"{uuid.uuid4().hex}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=LAG), path)
        return spark.read.schema(LAG_DDL).parquet(str(path))

    return make
