"""Whole runs of `manage.py report` with Spark: killed while it computes, made again, and by a cluster; rows are equal.

`test_killed.py` kills the process at each of our own steps, without Spark.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.lag_samples import CLUSTER, write_day
from mqadmin.reports.history import History
from tests.support.children import Child
from tests.support.install import ROOT, manage
from tests.support.migrated import FILE, bring_migrated_database
from tests.support.spark import JVM_WITHIN_S, require_spark, standalone_cluster
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(1800)]

DAY = date(2026, 11, 22)
# A group with an objective of its own, which is judged by rows that come from the database.
ROWS = f"""
from mqadmin.clusters.models import Cluster
from mqadmin.objectives.models import Objective
from datetime import datetime, UTC
cluster = Cluster.objects.create(name="{CLUSTER}", namesrv="127.0.0.1:9")
Objective.objects.create(cluster=cluster, group="group-0000*", lag_s=5, valid_from=datetime(2026, 1, 1, tzinfo=UTC))
"""
# Every run has a new JVM, which would compile more than it computes; and a cluster's driver is on this machine.
SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
}
JVM_OPTIONS = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}


@dataclass(frozen=True, slots=True)
class Install:
    """One with a day of history, and no console."""

    folder: Path

    def environment(self, master: str = "local[2]") -> dict[str, str]:
        ours = {"MQADMIN_DATA": str(self.folder), "DATABASE_URL": "", "MQADMIN_APPS": ""}
        return {**ours, **JVM_OPTIONS, "SPARK_CONF_DIR": str(self.folder.parent), "SPARK_MASTER": master}

    def report(self, name: str, master: str = "local[2]") -> Child:
        command = [sys.executable, "manage.py", "report", "--cluster", CLUSTER, "--since", str(DAY)]
        return Child(command, self.folder.parent / f"{name}.log", env=self.environment(master), cwd=ROOT)

    def made(self, name: str, master: str = "local[2]") -> list[dict[str, Any]]:
        """Makes the report; returns its rows."""
        child = self.report(name, master)
        try:
            assert child.process.wait(JVM_WITHIN_S) == 0, child.output()
        finally:
            child.kill()
        return self.rows()

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the groups, without what their database calls them."""
        rows = self.asked("SELECT * FROM mq_reports_groupday ORDER BY group_name")
        return [{name: row[name] for name in row if name not in ("id", "report_id")} for row in rows]

    def asked(self, query: str) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(self.folder / FILE, timeout=60)) as database, database:
            database.row_factory = sqlite3.Row
            return [dict(row) for row in database.execute(query).fetchall()]

    def leftovers(self) -> list[str]:
        """What is in the folders of reports, of Spark and of the history that does not belong there."""
        (report,) = self.asked("SELECT folder FROM mq_reports_dayreport")
        results = self.folder / "reports" / "v1"
        runs = [path for path in results.glob("*/*/run-*") if path != results / report["folder"]]
        strange = [path for path in (self.folder / "history").rglob(".*") if path.is_file()]
        return [str(path) for path in (*runs, *(self.folder / "spark").iterdir(), *strange)]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    require_spark()
    settings = "\n".join(f"{name} {value}" for name, value in SETTINGS.items())
    (tmp_path / "spark-defaults.conf").write_text(settings, encoding="utf-8")
    install = Install(tmp_path / "data")
    bring_migrated_database(install.folder)
    write_day(History(install.folder / "history"), DAY, 12, queues=4)
    manage(install.environment(), "shell", "-c", ROWS)
    return install


def computing(install: Install, child: Child, before: set[Path]) -> psutil.Process | None:
    """The JVM, once the first of Spark's stages has written what the next ones read: more than there was `before`."""
    assert child.is_running, child.output()
    if shuffled(install) <= before:
        return None
    return next(one for one in psutil.Process(child.pid).children() if "SparkSubmit" in " ".join(one.cmdline()))


def shuffled(install: Install) -> set[Path]:
    return set((install.folder / "spark").rglob("shuffle_*.data"))


def kill_python(child: Child, _jvm: psutil.Process) -> None:
    os.kill(child.pid, signal.SIGKILL)


def kill_jvm(_child: Child, jvm: psutil.Process) -> None:
    jvm.kill()


VICTIMS: dict[str, Callable[[Child, psutil.Process], None]] = {"python": kill_python, "jvm": kill_jvm}


def test_a_run_killed_while_spark_computes_and_made_again_has_the_rows_that_a_cluster_computes_undisturbed(
    install: Install, tmp_path: Path
) -> None:
    for name, kill in VICTIMS.items():
        killed(install, name, kill)
        assert install.rows() == [], "nothing is seen of it"
        # 90 s later nobody has heard of it, and the next run ends it.
        install.asked("UPDATE mq_reports_reportrun SET seen_at = '2026-01-01 00:00:00' WHERE state = 'running'")
    rows = install.made("again")
    assert len(rows) == 12
    assert sum(row["over_s"] for row in rows)
    assert install.leftovers() == []
    with standalone_cluster(tmp_path / "cluster", JVM_OPTIONS) as master:
        assert install.made("cluster", master) == rows
    assert "Asked to launch executor" in (tmp_path / "cluster" / "worker.log").read_text()
    assert install.leftovers() == []
    log = install.asked("SELECT state, problem FROM mq_reports_reportrun ORDER BY id")
    assert [(run["state"], run["problem"].split(":")[0]) for run in log] == [
        ("failed", "Interrupted"),
        ("failed", "Interrupted"),
        ("done", ""),
        ("done", ""),
    ]
    assert install.asked("SELECT revision FROM mq_reports_dayreport") == [{"revision": 1}]


def killed(install: Install, name: str, kill: Callable[[Child, psutil.Process], None]) -> None:
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
