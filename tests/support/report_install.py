"""An install with a day of history and no console, for tests of whole reports: made by real processes, with Spark."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from bench.lag_samples import CLUSTER, write_day
from mqadmin.reports.history import History
from tests.support.children import Child
from tests.support.install import ROOT, manage
from tests.support.migrated import FILE, bring_migrated_database
from tests.support.spark import JVM_WITHIN_S

DAY = date(2026, 11, 22)
GROUPS = 12
# A group with an objective of its own, which is judged by rows that come from the database.
ROWS = f"""
from mqadmin.clusters.models import Cluster
from mqadmin.objectives.models import Objective
from datetime import datetime, UTC
cluster = Cluster.objects.create(name="{CLUSTER}", namesrv="127.0.0.1:9")
Objective.objects.create(cluster=cluster, group="group-0000*", lag_s=5, valid_from=datetime(2026, 1, 1, tzinfo=UTC))
"""
# A cluster's driver is on this machine.
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
}


@dataclass(frozen=True, slots=True)
class ReportInstall:
    """`folder`: its data; beside it lie logs, and Spark's own settings."""

    folder: Path

    @classmethod
    def with_history(cls, folder: Path) -> ReportInstall:
        """Makes one, in `folder`."""
        settings = "\n".join(f"{name} {value}" for name, value in SETTINGS.items())
        folder.mkdir(exist_ok=True)
        (folder / "spark-defaults.conf").write_text(settings, encoding="utf-8")
        install = cls(folder / "data")
        bring_migrated_database(install.folder)
        write_day(History(install.folder / "history"), DAY, GROUPS, queues=4)
        manage(install.environment(), "shell", "-c", ROWS)
        return install

    def environment(self, master: str = "local[2]") -> dict[str, str]:
        ours = {"MQADMIN_DATA": str(self.folder), "DATABASE_URL": "", "MQADMIN_APPS": ""}
        return {**ours, "SPARK_CONF_DIR": str(self.folder.parent), "SPARK_MASTER": master}

    def report(self, name: str, master: str = "local[2]", program: Sequence[str] = ("manage.py",)) -> Child:
        """Begins to make the report of DAY, by `manage.py` or another program that takes its arguments."""
        command = [sys.executable, *program, "report", "--cluster", CLUSTER, "--since", str(DAY)]
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

    def log(self) -> list[tuple[str, str]]:
        """State and problem of each run, the first one first."""
        runs = self.asked("SELECT state, problem FROM mq_reports_reportrun ORDER BY id")
        return [(run["state"], run["problem"]) for run in runs]

    def give_up_running(self) -> None:
        """As if 90 s had passed in which nobody heard of a killed run: the next one ends it."""
        self.asked("UPDATE mq_reports_reportrun SET seen_at = '2026-01-01 00:00:00' WHERE state = 'running'")

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
