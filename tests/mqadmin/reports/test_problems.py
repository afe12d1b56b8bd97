"""Why a run failed, in one line."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from mqadmin.clusters.models import Cluster
from mqadmin.reports import spark_driver
from mqadmin.reports.java import NoJava
from mqadmin.reports.models import ReportRun, RunState
from mqadmin.reports.problems import problem_of

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


def test_a_full_disk_is_called_so_whoever_found_it() -> None:
    full = Exception(_JVM.replace("No such file or directory", "No space left on device"))
    for error in (full, OSError(errno.ENOSPC, "No space left on device")):
        assert problem_of(error).startswith("The disk with ")


def test_a_master_that_nobody_answers_for_is_told_before_a_jvm_starts(tmp_path: Path) -> None:
    config = spark_driver.SparkConfig("spark://127.0.0.1:1,127.0.0.1:2", tmp_path)
    with pytest.raises(spark_driver.NoSpark, match=r"127\.0\.0\.1:2 cannot"), spark_driver.spark_session(config):
        pass
    with pytest.raises(spark_driver.NoSpark, match="SPARK_MASTER"):
        spark_driver.check_master("spark://nonsense")
    spark_driver.check_master("local[*]")


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
