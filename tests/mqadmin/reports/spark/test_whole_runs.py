"""Whole runs of `manage.py report` with Spark: killed while it works, without room on the disk, made again, and by a
cluster; rows are equal.

    TORTURE=1 pytest tests/mqadmin/reports/spark/test_whole_runs.py      killed in every second stage, at each folder

`test_killed.py` kills the process at each of our own steps, without Spark.
"""

from __future__ import annotations

import os
import signal
from itertools import cycle
from pathlib import Path

import psutil
import pytest

from tests.support.children import is_alive
from tests.support.report_install import GROUPS, ReportInstall
from tests.support.spark import JVM_WITHIN_S, LIGHT_JVM, require_spark, standalone_cluster
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(1800)]

# When one of the two is killed. Of such a history a run has 29 stages: 4 until the queues are written, 13 until the
# hours are, 27 until the groups are.
MOMENTS = (
    (*(f"stages={count}" for count in range(1, 27, 2)), "writing=queues", "writing=hours", "writing=groups")
    if os.environ.get("TORTURE")
    else ("writing=groups",)
)
# Its shuffles find no room; those of later stages and the result are files like these.
FULL = "stages=20"


@pytest.fixture
def install(tmp_path: Path) -> ReportInstall:
    require_spark()
    return ReportInstall.with_history(tmp_path)


def test_a_run_disturbed_while_spark_works_and_made_again_has_the_rows_that_a_cluster_computes_undisturbed(
    install: ReportInstall, tmp_path: Path
) -> None:
    for what, moment in zip(cycle(("jvm", "python")), MOMENTS, strict=False):
        code, output = disturbed(install, what, moment)
        assert code == (-signal.SIGKILL if what == "python" else 1), f"{what} at {moment}: {output}"
        assert install.asked("SELECT * FROM mq_reports_dayreport") == [], "nothing is seen of it"
        assert install.rows() == []
        install.give_up_running()
    rows = install.made("again")
    assert len(rows) == GROUPS
    assert sum(row["over_s"] for row in rows)
    assert install.leftovers() == []

    reports = install.asked("SELECT * FROM mq_reports_dayreport")
    code, output = disturbed(install, "disk", FULL)
    assert code == 1, output
    assert install.asked("SELECT * FROM mq_reports_dayreport") == reports
    assert install.rows() == rows

    with standalone_cluster(tmp_path / "cluster", LIGHT_JVM) as master:
        assert install.made("cluster", master) == rows
    assert "Asked to launch executor" in (tmp_path / "cluster" / "worker.log").read_text()
    assert install.leftovers() == []
    assert install.asked("SELECT revision FROM mq_reports_dayreport") == [{"revision": 1}]
    *killed, again, full, by_cluster = install.log()
    assert [(state, problem.split(":")[0]) for state, problem in killed] == [("failed", "Interrupted")] * len(MOMENTS)
    assert again == by_cluster == ("done", "")
    place = f"The disk with {install.folder} is full, or a quota or limit of its user is reached: free some space"
    assert full[0] == "failed"
    assert place in full[1]
    assert "\n" not in full[1]


def disturbed(install: ReportInstall, what: str, moment: str) -> tuple[int, str]:
    """Has a run disturbed; returns its exit code and what it said, when no process of it is left."""
    child = install.report(f"{what}-{moment}", program=("-m", "tests.support.disturbed_report", what, moment))
    seen: set[psutil.Process] = set()

    def has_ended() -> bool:
        try:
            seen.update(psutil.Process(child.pid).children(recursive=True))
        except psutil.NoSuchProcess:
            pass
        return not child.is_running

    try:
        wait_until(has_ended, JVM_WITHIN_S, f"{what} at {moment}")
        wait_until(lambda: not any(map(is_alive, seen)), JVM_WITHIN_S, "the JVM's end")
    finally:
        child.kill()
    return child.process.returncode, child.output()
