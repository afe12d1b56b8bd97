"""Removes what members that left long ago subscribed to, and the members themselves."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import QuerySet

from mqadmin.clusters.models import Member, Subscription
from mqadmin.subscriptions.models import OwnSubscription

# As long as the timeline of rebalances is kept, and then some: a deploy leaves a row for each of its members.
KEPT_FOR = timedelta(days=30)
# Rows deleted in one statement, so that SQLite's only writer is not held for long.
BATCH = 1000


def remove_old(now: datetime) -> int:
    """Removes in batches what ended before KEPT_FOR; returns how many rows."""
    before = now - KEPT_FOR
    return sum(
        _remove(rows)
        for rows in (
            Subscription.objects.filter(ended_at__lt=before),
            OwnSubscription.objects.filter(ended_at__lt=before),
            Member.objects.filter(left_at__lt=before),
        )
    )


def _remove(rows: QuerySet[Subscription] | QuerySet[OwnSubscription] | QuerySet[Member]) -> int:
    count = 0
    while ids := list(rows.values_list("pk", flat=True)[:BATCH]):
        rows.model._default_manager.filter(pk__in=ids).delete()
        count += len(ids)
    return count
