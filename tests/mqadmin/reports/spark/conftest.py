"""One Spark session for all tests of this folder: starting one takes longer than all of them together."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from mqadmin.reports.java import NoJava, find_java
from mqadmin.reports.spark_driver import SparkConfig, spark_session
from tests.support.tools import require

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on two threads; one partition a stage, since the tables have ten rows."""
    require(importlib.util.find_spec("pyspark"), "no pyspark: install requirements/reports.txt")
    try:
        find_java()
    except NoJava as error:
        require(False, str(error))
    scratch = tmp_path_factory.mktemp("spark")
    settings = {"spark.sql.shuffle.partitions": "1", "spark.sql.codegen.wholeStage": "false"}
    config = SparkConfig(master="local[2]", scratch=scratch, driver_memory_mib=512, settings=settings)
    with spark_session(config) as session:
        yield session
