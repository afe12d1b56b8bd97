"""Spark for tests: a session, and a cluster of its own; starting either takes longer than most that is done with it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mqadmin.reports.java import NoJava, find_java
from mqadmin.reports.spark_driver import LIGHT_SETTINGS, SparkConfig, spark_session
from tests.support.children import Child, free_port
from tests.support.tools import require
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A JVM starts on a busy machine.
JVM_WITHIN_S = 900.0
# For JVMs of their own that compute little.
LIGHT_JVM = {"JAVA_TOOL_OPTIONS": LIGHT_SETTINGS["spark.driver.extraJavaOptions"]}


def require_spark() -> None:
    """Skips the test where there is no Spark or no Java for it."""
    require(importlib.util.find_spec("pyspark"), "no pyspark: install requirements/reports.txt")
    try:
        find_java()
    except NoJava as error:
        require(False, str(error))


@contextmanager
def small_session(scratch: Path) -> Iterator[SparkSession]:
    """A session on two threads; one partition a stage and nothing compiled, since what tests compute has few rows."""
    require_spark()
    settings = {"spark.sql.shuffle.partitions": "1", "spark.sql.codegen.factoryMode": "NO_CODEGEN", **LIGHT_SETTINGS}
    config = SparkConfig(master="local[2]", scratch=scratch, driver_memory_mib=512, settings=settings)
    with spark_session(config) as session:
        yield session


@contextmanager
def standalone_cluster(folder: Path, more: Mapping[str, str]) -> Iterator[str]:
    """Spark's own cluster, a master and a worker on this machine whose executors have no Python; yields its address."""
    home = Path(str(importlib.util.find_spec("pyspark").origin)).parent  # type: ignore[union-attr]
    env = {
        "SPARK_HOME": str(home),
        # As Spark's scripts, which are not used here, say it.
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "spilled"),
        # Any Python that a task would start ends at once.
        "PYTHONHOME": os.devnull,
        **more,
    }
    address = f"127.0.0.1:{free_port()}"
    host, _colon, port = address.partition(":")
    java = [str(find_java()), "-Xmx256m", "-cp", str(home / "jars" / "*")]
    places = ["--host", host, "--webui-port", "0"]
    commands = {
        "master": ["org.apache.spark.deploy.master.Master", *places, "--port", port],
        "worker": [
            *("org.apache.spark.deploy.worker.Worker", *places, "--cores", "2", "--memory", "1g"),
            *("--work-dir", str(folder / "executors"), f"spark://{address}"),
        ],
    }
    told = {"master": "New state: ALIVE", "worker": "Successfully registered with master"}
    folder.mkdir()
    with ExitStack() as stack:
        for name, command in commands.items():
            child = Child([*java, *command], folder / f"{name}.log", env=env)
            stack.callback(child.stop)
            wait_until(lambda: told[name] in child.output(), JVM_WITHIN_S, f"{name}: {child.log}")  # noqa: B023
        yield f"spark://{address}"
