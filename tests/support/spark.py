"""A Spark session for tests; starting one takes longer than most that is done with it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mqadmin.reports.java import NoJava, find_java
from mqadmin.reports.spark_driver import SparkConfig, spark_session
from tests.support.tools import require

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def small_session(scratch: Path) -> Iterator[SparkSession]:
    """A session on two threads; one partition a stage, since what tests compute has few rows."""
    require(importlib.util.find_spec("pyspark"), "no pyspark: install requirements/reports.txt")
    try:
        find_java()
    except NoJava as error:
        require(False, str(error))
    settings = {"spark.sql.shuffle.partitions": "1", "spark.sql.codegen.wholeStage": "false"}
    config = SparkConfig(master="local[2]", scratch=scratch, driver_memory_mib=512, settings=settings)
    with spark_session(config) as session:
        yield session
