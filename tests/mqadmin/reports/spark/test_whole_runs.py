"""Whole runs of `manage.py report` with Spark: killed while it computes, made again, and by a cluster; rows are equal.

`test_killed.py` kills the process at each of our own steps, without Spark; `test_disturbed.py` in Spark's later
stages.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.children import Child
from tests.support.report_install import JVM_OPTIONS, ReportInstall
from tests.support.spark import JVM_WITHIN_S, require_spark, standalone_cluster
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture
def install(tmp_path: Path) -> ReportInstall:
    require_spark()
    return ReportInstall.with_history(tmp_path)


def computing(install: ReportInstall, child: Child, before: set[Path]) -> psutil.Process | None:
    """The JVM, once the first of Spark's stages has written what the next ones read: more than there was `before`."""
    assert child.is_running, child.output()
    if shuffled(install) <= before:
        return None
    return next(one for one in psutil.Process(child.pid).children() if "SparkSubmit" in " ".join(one.cmdline()))


def shuffled(install: ReportInstall) -> set[Path]:
    return set((install.folder / "spark").rglob("shuffle_*.data"))


def kill_python(child: Child, _jvm: psutil.Process) -> None:
    os.kill(child.pid, signal.SIGKILL)


def kill_jvm(_child: Child, jvm: psutil.Process) -> None:
    jvm.kill()


VICTIMS: dict[str, Callable[[Child, psutil.Process], None]] = {"python": kill_python, "jvm": kill_jvm}


def test_a_run_killed_while_spark_computes_and_made_again_has_the_rows_that_a_cluster_computes_undisturbed(
    install: ReportInstall, tmp_path: Path
) -> None:
    for name, kill in VICTIMS.items():
        killed(install, name, kill)
        assert install.rows() == [], "nothing is seen of it"
        install.give_up_running()
    rows = install.made("again")
    assert len(rows) == 12
    assert sum(row["over_s"] for row in rows)
    assert install.leftovers() == []
    with standalone_cluster(tmp_path / "cluster", JVM_OPTIONS) as master:
        assert install.made("cluster", master) == rows
    assert "Asked to launch executor" in (tmp_path / "cluster" / "worker.log").read_text()
    assert install.leftovers() == []
    assert [(state, problem.split(":")[0]) for state, problem in install.log()] == [
        ("failed", "Interrupted"),
        ("failed", "Interrupted"),
        ("done", ""),
        ("done", ""),
    ]
    assert install.asked("SELECT revision FROM mq_reports_dayreport") == [{"revision": 1}]


def killed(install: ReportInstall, name: str, kill: Callable[[Child, psutil.Process], None]) -> None:
    """Has a run killed in the midst of Spark's work; neither of its processes is left."""
    before = shuffled(install)
    child = install.report(name)
    try:
        jvm = wait_until(lambda: computing(install, child, before), JVM_WITHIN_S, "Spark computes")
        kill(child, jvm)
        code = child.process.wait(JVM_WITHIN_S)
        wait_until(lambda: not jvm.is_running() or jvm.status() == psutil.STATUS_ZOMBIE, JVM_WITHIN_S)
    finally:
        child.kill()
    assert code == (-signal.SIGKILL if name == "python" else 1), child.output()
