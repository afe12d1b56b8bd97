"""Writes what a member has delivered, every few seconds: an hour's row is replaced, so writing again adds nothing."""

from __future__ import annotations

from datetime import datetime

from django.db import router

from consumer.delivery.counting import DeliveryCounts, HourCounts
from consumer.delivery.models import DeliveryHour

# What a kill loses at most. Each member writes one row a topic then, if anything was consumed.
WRITE_INTERVAL_S = 15.0
# Reports read what the last two days brought.
KEPT_S = 50 * 3600


def write(cluster: str, group: str, member: str, counts: DeliveryCounts, now_ms: int) -> None:
    """Writes what is new in `counts`. Raises DatabaseError; then the next call writes it."""
    changed = counts.changed(now_ms)
    if not changed:
        return
    DeliveryHour.objects.bulk_create(
        [_row(cluster, group, member, one) for one in changed],
        update_conflicts=True,
        unique_fields=["cluster", "hour_s", "group", "topic", "member"],
        update_fields=["counts"],
    )
    counts.wrote(changed)


def forget(now: datetime) -> int:
    """Deletes the hours that no report reads any more; returns how many rows those were."""
    database = router.db_for_write(DeliveryHour)
    old = DeliveryHour.objects.using(database).filter(hour_s__lt=int(now.timestamp()) - KEPT_S)
    return old.delete()[0]


def _row(cluster: str, group: str, member: str, one: HourCounts) -> DeliveryHour:
    return DeliveryHour(
        cluster=cluster, group=group, member=member, topic=one.topic, hour_s=one.hour_s, counts=[*map(list, one.counts)]
    )
