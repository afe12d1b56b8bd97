"""Removes dead letters that are older than what is kept (MQADMIN_DEAD_LETTER_DAYS), a bounded number at a time.

A day of an incident, or a setting that was lowered, may leave millions: one pass takes PASS_S at most, and says whether
there is more.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet

from mqadmin.deadletters.models import DeadLetter, Failure, FailureHour

# Rows deleted in one transaction, so that it never holds SQLite's only writer for long.
REMOVE_BATCH = 1000
# Of one pass, so that other tasks of the worker have their turn.
PASS_S = 20.0
# The trend that pages show.
HOURS_KEPT_FOR = timedelta(days=30)


def remove_old(now: datetime, *, within_s: float = PASS_S) -> int:
    """Returns how many dead letters were removed. A failure goes with its last one."""
    before, ends_s = _kept_from(now), time.monotonic() + within_s
    # In order of age: what a batch has left in the index is behind the next one.
    count = _remove(DeadLetter.objects.filter(dead_at__lt=before).order_by("dead_at"), ends_s)
    _remove(FailureHour.objects.filter(hour__lt=now - HOURS_KEPT_FOR), ends_s)
    has_dead = Exists(DeadLetter.objects.filter(failure=OuterRef("pk")))
    _remove(Failure.objects.filter(~has_dead, last_dead_at__lt=before), ends_s)
    return count


def has_old(now: datetime) -> bool:
    """Returns whether a pass has left some."""
    return DeadLetter.objects.filter(dead_at__lt=_kept_from(now)).exists()


def _kept_from(now: datetime) -> datetime:
    return now - timedelta(days=settings.MQADMIN_DEAD_LETTER_DAYS)


def _remove(rows: QuerySet[Any], ends_s: float) -> int:
    """Removes them batch by batch until `ends_s`, one batch at least; returns how many."""
    count = 0
    while True:
        ids = list(rows.values_list("pk", flat=True)[:REMOVE_BATCH])
        if ids:
            rows.model._default_manager.filter(pk__in=ids).delete()
            count += len(ids)
        if len(ids) < REMOVE_BATCH or time.monotonic() >= ends_s:
            return count
