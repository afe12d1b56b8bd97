"""The Celery application: `celery -A mqadmin worker …` and `celery -A mqadmin beat` start here."""

from __future__ import annotations

import os
import signal
from typing import Any

from celery import Celery
from celery.signals import beat_init, worker_before_create_process

from consumer.hosting.shared_memory import keep_memory_shared
from mqadmin.garbage import look_less_often

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")
look_less_often()

app = Celery("mqadmin")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
worker_before_create_process.connect(keep_memory_shared)


@beat_init.connect
def end_beat_by_signal(**_: Any) -> None:
    """Puts a handler in the place of Celery's, which writes the schedule to the database inside the handler.

    There it may wait for a lock that the very frame holds which it interrupted. Beat writes the schedule on its way out
    anyway; further signals are not to interrupt that.
    """

    def stop(*_: object) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        raise SystemExit

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
