from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from celery import Celery
from celery.beat import PersistentScheduler, Service
from celery.signals import beat_init
from django_celery_beat.models import PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler

from consumer import tasks  # noqa: F401 - the receiver of beat's signal
from consumer.hosting.schedule import NAME, SCHEDULE, complete_schedule, install_schedule
from consumer.outbox.schedule import DELIVERY_TASK as OUTBOX


@pytest.mark.django_db
def test_supervision_is_in_beats_schedule_after_migrate() -> None:
    task = PeriodicTask.objects.get(name=NAME)
    assert (task.task, task.queue, task.interval.every, task.expire_seconds) == (
        "consumer.tasks.supervise",
        "jobs",
        2,
        4,
    )


@pytest.mark.django_db
def test_a_schedule_that_an_operator_changed_stays_as_it_is() -> None:
    PeriodicTask.objects.filter(name=NAME).update(enabled=False)
    install_schedule()
    assert PeriodicTask.objects.filter(name=NAME).values_list("enabled", flat=True).get() is False


class Rows(DatabaseScheduler):
    """As a project may derive its own; without a database."""

    schedule: ClassVar[dict[str, Any]] = {}  # type: ignore[misc]

    def __init__(self) -> None: ...


def test_a_scheduler_that_reads_the_rows_gets_nothing_besides() -> None:
    scheduler = Rows()
    complete_schedule(scheduler)
    assert scheduler.schedule == {}


def test_any_other_scheduler_gets_what_it_lacks(tmp_path: Path) -> None:
    app = Celery("project")
    own = {"task": OUTBOX, "schedule": 60.0}
    app.conf.beat_schedule = {"the outbox each minute": own}
    scheduler = PersistentScheduler(app=app, schedule_filename=str(tmp_path / "schedule"))
    complete_schedule(scheduler)
    assert {one.task for one in SCHEDULE} <= {entry.task for entry in scheduler.schedule.values()}
    assert [name for name, entry in scheduler.schedule.items() if entry.task == OUTBOX] == ["the outbox each minute"]
    supervise = scheduler.schedule[NAME]
    assert (supervise.options, supervise.schedule.seconds) == ({"queue": "jobs", "expires": 4}, 2)
    names = set(scheduler.schedule)
    scheduler.close()
    again = PersistentScheduler(app=app, schedule_filename=str(tmp_path / "schedule"))
    complete_schedule(again)
    assert set(again.schedule) == names
    again.close()


def test_beat_completes_its_schedule_when_it_starts(tmp_path: Path) -> None:
    service = Service(app=Celery("project"), schedule_filename=str(tmp_path / "schedule"))
    beat_init.send(sender=service)
    assert NAME in service.scheduler.schedule
    service.scheduler.close()
