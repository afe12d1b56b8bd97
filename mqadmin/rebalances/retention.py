"""Removes rebalances that are older than the timeline goes back."""

from __future__ import annotations

from datetime import datetime, timedelta

from mqadmin.rebalances.models import RebalanceEvent

KEPT_FOR = timedelta(days=7)
# Rows deleted in one statement, so that pruning never holds SQLite's only writer for long.
PRUNE_BATCH = 5000


def prune(now: datetime) -> int:
    """Deletes the events that are older than KEPT_FOR; returns how many."""
    count = 0
    while True:
        old = list(RebalanceEvent.objects.filter(at__lt=now - KEPT_FOR).values_list("pk", flat=True)[:PRUNE_BATCH])
        if not old:
            return count
        count += RebalanceEvent.objects.filter(pk__in=old).delete()[0]
