"""Writes the ledger of a replay: an entry a dead letter of the selection or line of the file, chunk by chunk.

The place reached moves with the entries in one transaction, so a process that dies writes none twice and forgets none.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from django.utils import timezone

from mqadmin.clusters.bulk import CHUNK
from mqadmin.deadletters.selection import selected
from mqadmin.replay_files.selectors import FileLines, of_group
from mqadmin.replays import ledger
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.states import EntryState

# Entries written in one transaction, so that it never holds SQLite's only writer for long.
FREEZE_CHUNK = 1000
# Of a dead letter: what the ledger has, and its place.
_WRITTEN = ("message_id", "origin_topic", "dead_at")


def freeze(job: ReplayJob, token: str) -> None:
    """Writes the next chunk; says that the ledger is complete when there is none. Raises LeaseLost."""
    entries, place = _of_file(job) if "file" in job.selection else _of_index(job)
    with ledger.held(job.pk, token):
        if not entries and place is None:
            job.frozen_at = timezone.now()
            ReplayJob.objects.filter(pk=job.pk).update(frozen_at=job.frozen_at)
            return
        ReplayEntry.objects.bulk_create(entries, batch_size=CHUNK)
        job.frozen_after = place
        ReplayJob.objects.filter(pk=job.pk).update(frozen_after=place)
        ledger.count(job.pk, Counter(entry.state for entry in entries), new_count=len(entries))


def _of_index(job: ReplayJob) -> tuple[list[ReplayEntry], Any]:
    """Returns the next dead letters; a bounded look may find none, and say where the next one goes on."""
    found = selected(job.cluster, job.group_name, job.selection, until_id=job.until_id)
    light = replace(found, rows=found.rows.only(*_WRITTEN))
    looked = light.look(job.frozen_after, FREEZE_CHUNK)
    rows = looked.rows
    entries = [
        ReplayEntry(job=job, dead_letter=row, message_id=row.message_id, origin_topic=row.origin_topic) for row in rows
    ]
    return entries, looked.place or (found.position(rows[-1]) if rows else None)


def _of_file(job: ReplayJob) -> tuple[list[ReplayEntry], Any]:
    """Returns the next lines; those that are wrong have their outcome already."""
    found = FileLines(of_group(job.selection["file"], job.group_name))
    rows = found.after(job.frozen_after, FREEZE_CHUNK)
    entries = [
        ReplayEntry(
            job=job,
            dead_letter_id=row.dead_letter_id,
            file_message=row,
            line=row.line,
            message_id=row.message_id,
            origin_topic=row.origin_topic,
            state=EntryState.REFUSED if row.problem else EntryState.WAITING,
            words=row.problem,
        )
        for row in rows
    ]
    return entries, found.position(rows[-1]) if rows else None
