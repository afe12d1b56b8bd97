"""The Celery application: `celery -A mqadmin worker …` and `celery -A mqadmin beat` start here."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import billiard
from celery import Celery
from celery.signals import worker_before_create_process, worker_init, worker_process_init

from consumer.hosting.shared_memory import keep_memory_shared
from mqadmin.garbage import look_less_often
from mqadmin.redis_outage import RedisOutage

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")
# Django's checks import every page, which takes as long as the rest of a start, and Celery throws away what they find.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")
look_less_often()


class Application(Celery):
    """Celery, but for how beat ends."""

    @cached_property
    def Beat(self) -> Any:
        from mqadmin.beat_process import BeatProcess  # for beat alone

        return self.subclass_with_self(BeatProcess)


app = Application("mqadmin")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
worker_before_create_process.connect(keep_memory_shared)


@worker_init.connect
def prepare(**_: Any) -> None:
    from consumer.hosting.unread_results import read_results_to_the_end  # for workers alone

    read_results_to_the_end()


@worker_process_init.connect
def leave_lines_about_redis_to_worker(**_: Any) -> None:
    """Runs in each process of a prefork pool; with the pool "solo" that is the worker itself."""
    if billiard.current_process().name != "MainProcess":
        RedisOutage.leave_to_worker()
