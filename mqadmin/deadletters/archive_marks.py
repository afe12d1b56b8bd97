"""Carries the archiving of a failure to its dead letters, of which there may be millions: a bounded number at a time.

A failure is archived or restored at once, and an `ArchiveMark` remembers what its dead letters are still to become. The
action carries out the first steps, the index (every 15 s) the others. What is said meanwhile replaces the mark.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import Max

from mqadmin.deadletters.models import ArchiveMark, DeadLetter, Failure

# Rows of one transaction, so that it never holds SQLite's only writer for long.
STEP_ROWS = 1000
# While somebody waits for the page; the rest follows within seconds.
STEPS_AT_ONCE = 10
# Of one call of the index, all failures together.
STEPS_MAX = 200


def mark(failure: Failure, archived_at: datetime | None) -> None:
    """Archives a failure (at that moment) or restores it (None), with those of its dead letters that are there now."""
    Failure.objects.filter(pk=failure.pk).update(archived_at=archived_at)
    last = DeadLetter.objects.filter(failure=failure).aggregate(last=Max("pk"))["last"]
    values = {"archived_at": archived_at, "up_to_id": last or 0}
    ArchiveMark.objects.update_or_create(failure=failure, defaults=values)


def carry_on(steps_max: int = STEPS_MAX, failure: Failure | None = None) -> int:
    """Marks the dead letters of one failure, or of all that wait; returns how many."""
    waiting = ArchiveMark.objects.all() if failure is None else ArchiveMark.objects.filter(failure=failure)
    count = 0
    for _ in range(steps_max):
        failure_id = waiting.values_list("pk", flat=True).first()
        if failure_id is None:
            break
        count += _step(failure_id)
    return count


def _step(failure_id: int) -> int:
    with transaction.atomic():
        wanted = ArchiveMark.objects.select_for_update().filter(pk=failure_id).first()
        if wanted is None:
            return 0
        differ = DeadLetter.objects.filter(
            failure=failure_id, pk__lte=wanted.up_to_id, archived_at__isnull=wanted.archived_at is not None
        )
        count = DeadLetter.objects.filter(pk__in=list(differ.values_list("pk", flat=True)[:STEP_ROWS])).update(
            archived_at=wanted.archived_at
        )
        if count < STEP_ROWS:
            wanted.delete()
        return count
