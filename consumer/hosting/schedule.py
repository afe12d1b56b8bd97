"""Adds supervision to beat's schedule in the database (django-celery-beat)."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, connections, router

from consumer.conf import jobs_queue

NAME = "consumer: supervise instances"
TASK = "consumer.tasks.supervise"
EVERY_S = 2
# A run that no worker has taken by then is void: the next one follows.
EXPIRES_S = 4


def install_schedule(using: str = DEFAULT_DB_ALIAS, **_: Any) -> None:
    """Runs after every migrate. A row that exists stays as an operator has changed it."""
    if not apps.is_installed("django_celery_beat"):
        return
    from django_celery_beat.models import IntervalSchedule, PeriodicTask  # only there when it is installed

    if not router.allow_migrate_model(using, PeriodicTask):
        return
    if PeriodicTask._meta.db_table not in connections[using].introspection.table_names():
        return
    every, _created = IntervalSchedule.objects.using(using).get_or_create(
        every=EVERY_S, period=IntervalSchedule.SECONDS
    )
    PeriodicTask.objects.using(using).get_or_create(
        name=NAME,
        defaults={
            "task": TASK,
            "interval": every,
            "queue": jobs_queue(),
            "expire_seconds": EXPIRES_S,
            "description": "Keeps the wanted number of consumer instances running.",
        },
    )
