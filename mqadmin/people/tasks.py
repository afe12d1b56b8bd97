"""Celery: rows of log-ins whose session is gone. On the queue `jobs`; beat starts it (`mqadmin/beat.py`)."""

from __future__ import annotations

from celery import shared_task

from mqadmin.people import log_ins


@shared_task
def forget_ended_log_ins() -> None:
    """Deletes the rows of log-ins that ended by themselves."""
    log_ins.forget_ended()
