"""One Spark session for all tests of this folder: starting one takes longer than all of them together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.spark import small_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with small_session(tmp_path_factory.mktemp("spark")) as session:
        yield session
