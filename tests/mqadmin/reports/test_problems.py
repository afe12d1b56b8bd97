"""Why a run failed, in one line."""

from __future__ import annotations

import errno
import importlib.util
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from mqadmin.clusters.models import Cluster
from mqadmin.reports import spark_driver
from mqadmin.reports.java import NoJava
from mqadmin.reports.models import ReportRun, RunState
from mqadmin.reports.problems import problem_of
from tests.support.tools import require

_JVM = """An error occurred while calling o52.parquet.
: org.apache.spark.SparkException: Job aborted.
\tat org.apache.spark.sql.Something
Caused by: org.apache.spark.SparkException: Task failed while writing rows
\tat org.apache.spark.Something
Caused by: java.io.FileNotFoundException: /gone (No such file or directory)
\t... 8 more
"""


def test_of_an_error_of_spark_the_innermost_cause_is_told() -> None:
    assert problem_of(Exception(_JVM)) == "java.io.FileNotFoundException: /gone (No such file or directory)"
    assert problem_of(Exception(": java.lang.OutOfMemoryError: Java heap space")) == (
        "java.lang.OutOfMemoryError: Java heap space"
    )
    assert problem_of(ValueError("no such thing\nat all")) == "no such thing"
    assert problem_of(KeyError()) == "KeyError"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "No space left on device"),
        (errno.EDQUOT, "Disk quota exceeded"),
        (errno.EFBIG, "File too large"),
    ],
    ids=["full", "quota", "limit"],
)
def test_a_disk_that_takes_no_more_is_called_so_whoever_found_it(number: int, words: str) -> None:
    of_the_jvm = Exception(_JVM.replace("No such file or directory", words))
    for error in (of_the_jvm, OSError(number, words)):
        assert problem_of(error).startswith("The disk with ")
        assert "free some space" in problem_of(error)


def test_a_master_that_nobody_answers_for_is_told_before_a_jvm_starts(tmp_path: Path) -> None:
    config = spark_driver.SparkConfig("spark://127.0.0.1:1,127.0.0.1:2", tmp_path)
    with pytest.raises(spark_driver.NoSpark, match=r"127\.0\.0\.1:2 cannot"), spark_driver.spark_session(config):
        pass
    with pytest.raises(spark_driver.NoSpark, match="SPARK_MASTER"):
        spark_driver.check_master("spark://nonsense")
    spark_driver.check_master("local[*]")


def test_what_spark_says_of_a_failure_outlives_its_jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark asks the JVM for the text of its exceptions: afterwards there is none."""
    require(importlib.util.find_spec("pyspark"), "no pyspark: install requirements/reports.txt")
    from py4j.protocol import Py4JError  # only where the reports' requirements are installed

    is_there = True

    class OfTheJvm(Py4JError):
        def __str__(self) -> str:
            assert is_there
            return _JVM

    def end(*_: object, **__: object) -> None:
        nonlocal is_there
        is_there = False

    stand_ins = {
        "_start_jvm": lambda *_: None,
        "_wait_for_gateway": lambda *_: (0, ""),
        "_connect": lambda *_: None,
        "_has_ended": lambda *_, **__: False,
        "_disconnect": end,
        "_end_jvm": end,
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(spark_driver, name, stand_in)
    config = spark_driver.SparkConfig("local[1]", tmp_path)
    with pytest.raises(spark_driver.SparkFailed) as failed, spark_driver.spark_session(config):
        raise OfTheJvm
    assert problem_of(failed.value) == "java.io.FileNotFoundException: /gone (No such file or directory)"


class Executor:
    def __init__(self, name: str) -> None:
        self.name = name

    def id(self) -> str:
        return self.name


def test_a_cluster_without_a_free_worker_is_told_and_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [Executor("driver")]
    monkeypatch.setattr(spark_driver, "executors", lambda _spark: found)
    session: Any = None
    with pytest.raises(spark_driver.NoSpark, match="gave no executor within 0 s"):
        spark_driver.wait_for_executor(session, "spark://host:7077", wait_s=0)
    spark_driver.wait_for_executor(session, "local[*]", wait_s=0)
    found.append(Executor("0"))
    spark_driver.wait_for_executor(session, "spark://host:7077", wait_s=0)


@pytest.mark.django_db
@pytest.mark.parametrize("error", [NoJava("There is no Java"), OSError(errno.ENOSPC, "No space left on device")])
def test_a_run_that_fails_has_one_line_in_the_log(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(_run: ReportRun) -> None:
        raise error

    Cluster.objects.create(name="prod", namesrv="127.0.0.1:9876")
    monkeypatch.setattr("mqadmin.reports.working.work", work)
    with pytest.raises(CommandError):
        call_command("report", "--cluster", "prod")
    (run,) = ReportRun.objects.all()
    assert (run.state, run.problem) == (RunState.FAILED, problem_of(error))
    assert "\n" not in run.problem
