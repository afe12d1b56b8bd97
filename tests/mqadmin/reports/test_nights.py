"""Beat starts the night's report: its schedule, its task and a run, with the time of the night."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from django.utils import timezone
from django_celery_beat.models import PeriodicTask
from django_celery_beat.schedulers import ModelEntry

from mqadmin import beat
from mqadmin.celery import app
from mqadmin.reports import runs, tasks
from mqadmin.reports.models import ReportRun, RunState

pytestmark = pytest.mark.django_db

MIDNIGHT = datetime(2026, 11, 22, tzinfo=UTC)


def tick(at: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the entry of beat's schedule say whether it is due, and what it starts run at once."""
    monkeypatch.setattr(timezone, "now", lambda: at)
    row = PeriodicTask.objects.get(task="mqadmin.reports.tasks.make_reports")
    entry = ModelEntry(row, app=app)
    monkeypatch.setattr(entry.schedule, "nowfun", lambda: at)
    if entry.schedule.is_due(at - timedelta(seconds=beat_interval_s(row))).is_due:
        app.tasks[entry.task]()


def beat_interval_s(row: PeriodicTask) -> int:
    return int(row.interval.every)


def test_beat_starts_the_report_of_the_day_before_after_one_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    beat.install()
    row = PeriodicTask.objects.get(task="mqadmin.reports.tasks.make_reports")
    assert (row.queue, row.enabled) == ("reports", True)
    made: list[ReportRun] = []

    def make(arguments: list[str], _timeout_s: float) -> tuple[int, str]:
        run = ReportRun.objects.get(pk=int(arguments[-1]))
        made.append(run)
        runs.end(run, timezone.now())
        return 0, ""

    monkeypatch.setattr(tasks, "_manage", make)
    for at in (MIDNIGHT, MIDNIGHT + timedelta(minutes=59)):
        tick(at, monkeypatch)
    assert made == []
    for at in (MIDNIGHT + timedelta(minutes=61), MIDNIGHT + timedelta(hours=2)):
        tick(at, monkeypatch)
    assert [(run.since, run.is_nightly) for run in made] == [(date(2026, 11, 21), True)]
    assert [run.state for run in ReportRun.objects.all()] == [RunState.DONE]
