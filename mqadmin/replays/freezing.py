"""Writes the ledger of a replay: an entry for each dead letter of the selection, a bounded chunk at a time.

The place reached moves with the entries in one transaction, so a process that dies writes none twice and forgets none.
"""

from __future__ import annotations

from collections import Counter

from django.utils import timezone

from mqadmin.clusters.bulk import CHUNK
from mqadmin.deadletters.selection import selected
from mqadmin.replays import ledger
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.states import EntryState

# Entries written in one transaction, so that it never holds SQLite's only writer for long.
FREEZE_CHUNK = 1000


def freeze(job: ReplayJob, token: str) -> None:
    """Writes the next chunk; says that the ledger is complete when there is none. Raises LeaseLost."""
    found = selected(job.cluster, job.group_name, job.selection, until_id=job.until_id)
    rows = found.after(job.frozen_after, FREEZE_CHUNK)
    with ledger.held(job.pk, token):
        if not rows:
            job.frozen_at = timezone.now()
            ReplayJob.objects.filter(pk=job.pk).update(frozen_at=job.frozen_at)
            return
        ReplayEntry.objects.bulk_create(
            [
                ReplayEntry(job=job, dead_letter=row, message_id=row.message_id, origin_topic=row.origin_topic)
                for row in rows
            ],
            batch_size=CHUNK,
        )
        job.frozen_after = found.position(rows[-1])
        ReplayJob.objects.filter(pk=job.pk).update(frozen_after=job.frozen_after)
        ledger.count(job.pk, Counter({EntryState.WAITING: len(rows)}), new_count=len(rows))
