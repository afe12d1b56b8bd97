"""Beat and the worker `reports`, as an install has them, make the night's report: the test sets the worker's clock.

Beat itself knows no night: it has the worker look whether it is time, again and again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.celery_worker import CeleryWorker
from tests.support.children import Child
from tests.support.install import ROOT, manage
from tests.support.redis_server import RedisServer
from tests.support.report_install import DAY, GROUPS, ReportInstall
from tests.support.spark import JVM_WITHIN_S, require_spark
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.redis, pytest.mark.spark, pytest.mark.timeout(1800)]

TASK = "mqadmin.reports.tasks.make_reports"
# Beat looks at its schedule every five seconds at most.
EVERY_S = 2
MIDNIGHT = datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC) + timedelta(days=1)
ONE = MIDNIGHT + timedelta(hours=1)
OFTENER = f"""
from django_celery_beat.models import IntervalSchedule, PeriodicTask
interval = IntervalSchedule.objects.create(every={EVERY_S}, period="seconds")
PeriodicTask.objects.filter(task="{TASK}").update(interval=interval)
"""


class Night:
    """An install with beat and one worker; that, and the runs that it starts, have the clock that the test sets."""

    def __init__(self, folder: Path, redis: RedisServer) -> None:
        self.install = ReportInstall.with_history(folder)
        self._folder = folder
        self._clock = folder / "clock"
        self._beat_env = {**self.install.environment(), "REDIS_URL": redis.url}
        self._env = {
            **self._beat_env,
            "DJANGO_SETTINGS_MODULE": "tests.support.clock_settings",
            "CLOCK_FILE": str(self._clock),
        }
        manage(self.install.environment(), "shell", "-c", OFTENER)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Beat and the worker run until the block ends."""
        command = [sys.executable, "-m", "celery", "-A", "mqadmin", "beat", "-l", "INFO", "--pidfile="]
        with CeleryWorker("reports", "reports", self._folder, self._env, options=("-P", "threads")) as worker:
            beat = Child(command, self._folder / "beat.log", cwd=ROOT, env=self._beat_env)
            self._worker, self._beat = worker, beat
            try:
                yield
            finally:
                beat.stop()

    def becomes(self, moment: datetime) -> None:
        """Sets the clock."""
        draft = self._clock.with_suffix(".draft")
        draft.write_text(str((moment - datetime.now(UTC)).total_seconds()), encoding="ascii")
        os.replace(draft, self._clock)

    def wait_for_turns(self) -> None:
        """Returns when beat has twice had the worker look whether it is time."""
        before = self._turns()

        def have_been() -> bool:
            assert self._beat.is_running, self._beat.output()
            return self._turns() >= before + 2

        wait_until(have_been, JVM_WITHIN_S, "beat's task in the worker")

    def _turns(self) -> int:
        output = self._worker.output()
        return sum(f"Task {TASK}[" in line and "succeeded" in line for line in output.splitlines())

    def runs(self) -> list[tuple[str, bool, str, str]]:
        """The runs so far: the last day, whether nightly, state, problem."""
        found = self.install.asked("SELECT * FROM mq_reports_reportrun ORDER BY id")
        return [(run["until"], bool(run["is_nightly"]), run["state"], run["problem"]) for run in found]


@pytest.fixture
def night(tmp_path: Path) -> Iterator[Night]:
    require_spark()
    with RedisServer(tmp_path) as redis:
        yield Night(tmp_path / "install", redis)


def test_beat_has_the_report_of_the_day_before_made_after_one_at_night_and_once(night: Night) -> None:
    install, first = night.install, (str(DAY), True, "done", "")
    night.becomes(ONE - timedelta(minutes=30))
    with night.going_on():
        night.wait_for_turns()
        assert night.runs() == [], "it is half past midnight"
        night.becomes(ONE)
        wait_until(lambda: night.runs() and night.runs()[0][2] in ("done", "failed"), JVM_WITHIN_S, "the night's run")
        assert night.runs() == [first]
        (report,) = install.asked("SELECT * FROM mq_reports_dayreport")
        assert (report["day"], report["is_whole"], report["revision"]) == (str(DAY), 1, 1)
        assert report["group_count"] == len(install.rows()) == GROUPS
        assert install.leftovers() == []
        night.wait_for_turns()
        night.becomes(ONE + timedelta(hours=4))
        night.wait_for_turns()
        assert night.runs() == [first], "it is made once"
    with night.going_on():
        night.wait_for_turns()
        assert night.runs() == [first], "and once after a restart"
        night.becomes(ONE + timedelta(days=1))
        wait_until(lambda: len(night.runs()) > 1 and night.runs()[1][2] == "done", what="the next night's run")
    assert night.runs() == [first, (str(MIDNIGHT.date()), True, "done", "")]
    assert [one["day"] for one in install.asked("SELECT day FROM mq_reports_dayreport")] == [str(DAY)]
