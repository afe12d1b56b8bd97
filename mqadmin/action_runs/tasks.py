"""Celery: runs that nobody ended, and keys that are old. On the queue `jobs`; beat starts it (`mqadmin/beat.py`)."""

from __future__ import annotations

import logging

from celery import shared_task
from django.utils import timezone

from mqadmin.action_runs import runs

logger = logging.getLogger(__name__)


@shared_task
def end_abandoned_runs() -> None:
    """Audits runs whose process died, and deletes ended ones after `runs.KEYS_KEPT_FOR`."""
    now = timezone.now()
    if count := runs.audit_abandoned(now):
        logger.warning("%d actions ended without an outcome; the audit names them", count)
    runs.forget_old_keys(now)
