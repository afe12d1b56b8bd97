"""Adds the runtime's regular tasks to beat's schedule, whichever scheduler beat runs with.

That of django-celery-beat reads rows of the database, which `migrate` makes and people may change. Any other one, such
as Celery's own, gets them when beat starts: without supervision nothing would replace an instance that ended.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, connections, router

from consumer.conf import jobs_queue
from consumer.outbox.schedule import DELIVERY_EVERY_S, DELIVERY_EXPIRES_S, DELIVERY_NAME, DELIVERY_TASK

logger = logging.getLogger(__name__)

NAME = "consumer: supervise instances"
TASK = "consumer.tasks.supervise"
EVERY_S = 2
# A run that no worker has taken by then is void: the next one follows.
EXPIRES_S = 4


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A task that beat sends every `every_s`; a run that no worker has taken after `expires_s` is void."""

    name: str
    task: str
    every_s: int
    expires_s: int
    description: str


SCHEDULE = (
    Scheduled(NAME, TASK, EVERY_S, EXPIRES_S, "Keeps the wanted number of consumer instances running."),
    Scheduled(DELIVERY_NAME, DELIVERY_TASK, DELIVERY_EVERY_S, DELIVERY_EXPIRES_S, "Sends what waits in the outbox."),
    Scheduled(
        "consumer: forget what was consumed once",
        "consumer.tasks.forget_consumed",
        3600,
        3600,
        "Deletes the keys of messages that are older than CONSUMER_ONCE_DAYS.",
    ),
    Scheduled(
        "consumer: forget how long deliveries took",
        "consumer.tasks.forget_deliveries",
        3600,
        3600,
        "Deletes the hours that no report reads any more.",
    ),
)


def install_schedule(using: str = DEFAULT_DB_ALIAS, **_: Any) -> None:
    """Runs after every migrate. A row that exists stays as an operator has changed it."""
    if not apps.is_installed("django_celery_beat"):
        return
    from django_celery_beat.models import IntervalSchedule, PeriodicTask  # only there when it is installed

    if not router.allow_migrate_model(using, PeriodicTask):
        return
    if PeriodicTask._meta.db_table not in connections[using].introspection.table_names():
        return
    for one in SCHEDULE:
        every, _created = IntervalSchedule.objects.using(using).get_or_create(
            every=one.every_s, period=IntervalSchedule.SECONDS
        )
        PeriodicTask.objects.using(using).get_or_create(
            name=one.name,
            defaults={
                "task": one.task,
                "interval": every,
                "queue": jobs_queue(),
                "expire_seconds": one.expires_s,
                "description": one.description,
            },
        )


def complete_schedule(scheduler: Any) -> None:
    """Runs when beat starts. Adds the tasks that its schedule lacks, unless it reads the rows of the database."""
    if any(base.__module__.startswith("django_celery_beat.") for base in type(scheduler).__mro__):
        return
    known = {entry.task for entry in scheduler.schedule.values()}
    missing = {one.name: _entry(one) for one in SCHEDULE if one.task not in known}
    scheduler.update_from_dict(missing)
    logger.info("beat sends %d tasks of consumers besides its own", len(missing))


def _entry(one: Scheduled) -> dict[str, Any]:
    return {
        "task": one.task,
        "schedule": timedelta(seconds=one.every_s),
        "options": {"queue": jobs_queue(), "expires": one.expires_s},
    }
