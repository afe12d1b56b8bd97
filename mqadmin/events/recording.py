"""Writes events once what they tell of is committed, in the order of their numbers, and forgets the oldest.

A reader goes on after the last number that it has. So no event may become visible after one with a larger number:
numbers are given and committed by one transaction at a time. SQLite has no other way; PostgreSQL takes a lock that
only these transactions ask for. They are short and hold no other lock.

An event whose writing fails, or that a crash comes before, is lost: the rows of its subject are true all the same.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.db import DatabaseError, connection, transaction

from mqadmin.events.kinds import NewEvent
from mqadmin.events.models import Event
from mqadmin.events.signals import events_recorded

logger = logging.getLogger(__name__)

# The window in which a reader can resume: about 15 MB.
EVENTS_KEPT = 50_000
# Old ones are deleted when a number passes a multiple of this.
TRIMMED_EVERY = 1_000
INSERTED_TOGETHER = 500
# Any number that nobody else uses for pg_advisory_xact_lock.
LOCK_NUMBER = 7_301_984


def record_after_commit(events: Sequence[NewEvent]) -> None:
    """Records `events` when the transaction in progress commits; at once outside one."""
    if events:
        transaction.on_commit(lambda: record(events), robust=True)


def record(events: Sequence[NewEvent]) -> None:
    """Records `events`. A database that refuses is logged and costs these events."""
    try:
        with transaction.atomic():
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK_NUMBER])
            rows = Event.objects.bulk_create([_row(event) for event in events], batch_size=INSERTED_TOGETHER)
            first, last = rows[0].pk, rows[-1].pk
            if (first - 1) // TRIMMED_EVERY != last // TRIMMED_EVERY:
                Event.objects.filter(pk__lte=last - EVENTS_KEPT).delete()
    except DatabaseError as error:
        logger.warning("%d events were not recorded: %s", len(events), error)
        return
    events_recorded.send(sender=Event, event=last)


def _row(event: NewEvent) -> Event:
    return Event(
        at=event.at, kind=event.kind, cluster_name=event.cluster, group_name=event.group, data=dict(event.data)
    )
