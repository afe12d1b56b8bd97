from __future__ import annotations

import pytest
from django_celery_beat.models import PeriodicTask

from consumer.hosting.schedule import NAME, install_schedule


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
