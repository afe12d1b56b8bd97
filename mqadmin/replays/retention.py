"""Removes replays that ended longer ago than dead letters are kept (MQADMIN_DEAD_LETTER_DAYS), with their ledgers."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings

from mqadmin.replays.models import ReplayEntry, ReplayJob

# Rows deleted in one statement, so that it never holds SQLite's only writer for long.
REMOVE_BATCH = 1000


def remove_old(now: datetime) -> int:
    """Returns how many replays were removed."""
    before = now - timedelta(days=settings.MQADMIN_DEAD_LETTER_DAYS)
    # A cancelled one may still be skipping, or looking for what it sent.
    old = ReplayJob.objects.filter(ended_at__lt=before, waiting_count=0, sending_count=0)
    count = 0
    for job_id in list(old.values_list("pk", flat=True)):
        while entries := list(ReplayEntry.objects.filter(job=job_id).values_list("pk", flat=True)[:REMOVE_BATCH]):
            ReplayEntry.objects.filter(pk__in=entries).delete()
        ReplayJob.objects.filter(pk=job_id).delete()
        count += 1
    return count
