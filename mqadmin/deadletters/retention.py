"""Removes dead letters that are older than what is kept (MQADMIN_DEAD_LETTER_DAYS)."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings

from mqadmin.deadletters.models import DeadLetter, Failure, FailureHour

# Rows deleted in one statement, so that it never holds SQLite's only writer for long.
REMOVE_BATCH = 1000
# The trend that pages show.
HOURS_KEPT_FOR = timedelta(days=30)


def remove_old(now: datetime) -> int:
    """Returns how many dead letters were removed. A failure goes with its last one."""
    before = now - timedelta(days=settings.MQADMIN_DEAD_LETTER_DAYS)
    count = 0
    while True:
        old = list(DeadLetter.objects.filter(dead_at__lt=before).values_list("pk", flat=True)[:REMOVE_BATCH])
        if not old:
            break
        DeadLetter.objects.filter(pk__in=old).delete()
        count += len(old)
    FailureHour.objects.filter(hour__lt=now - HOURS_KEPT_FOR).delete()
    Failure.objects.filter(last_dead_at__lt=before, dead_letters=None).delete()
    return count
