"""Keeps what is gone when the history is appended: for how long members of groups did not want the same (subscriptions
know only what is so now), and the rebalances of groups that are deleted.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.db.models.signals import pre_delete
from django.dispatch import receiver
from django.utils import timezone

from mqadmin.clusters.bulk import CHUNK
from mqadmin.clusters.models import Group
from mqadmin.rebalances.models import RebalanceEvent, RebalanceSource
from mqadmin.rebalances.retention import KEPT_FOR
from mqadmin.reports.models import ConflictTime, RebalanceOfGone
from mqadmin.subscriptions.models import GroupConflict
from mqadmin.subscriptions.signals import ConflictsChanged, conflicts_changed

# By then they are in the history, and its day has its report.
CONFLICTS_KEPT = timedelta(days=7)


@receiver(conflicts_changed)
def note_conflicts(event: ConflictsChanged, **_: object) -> None:
    """Ends what is over or has become another conflict, and begins what is new."""
    now = timezone.now()
    named = GroupConflict.objects.filter(group__cluster=event.cluster, group__name__in=event.groups)
    present = {one.group.name: one for one in named.select_related("group")}
    lasting = ConflictTime.objects.filter(cluster=event.cluster, group_name__in=event.groups, until=None)
    for row in lasting:
        found = present.get(row.group_name)
        if found is not None and (found.kind, found.topic_name) == (row.kind, row.topic_name):
            del present[row.group_name]
        else:
            row.until = now
            row.save(update_fields=["until"])
    ConflictTime.objects.bulk_create(
        ConflictTime(
            cluster=event.cluster,
            group_name=name,
            kind=one.kind,
            topic_name=one.topic_name,
            since=_since(event, name, one, now),
        )
        for name, one in present.items()
    )


@receiver(pre_delete, sender=Group)
def keep_what_goes_with_it(instance: Group, origin: object, **_: object) -> None:
    """Of a cluster that goes nothing is kept."""
    if getattr(origin, "model", type(origin)) is not Group:
        return
    lasting = ConflictTime.objects.filter(cluster=instance.cluster_id, group_name=instance.name, until=None)
    lasting.update(until=timezone.now())
    RebalanceOfGone.objects.bulk_create(
        (
            RebalanceOfGone(
                cluster_id=instance.cluster_id,
                group_name=instance.name,
                at=one.at,
                kind=one.kind,
                client_id=one.client_id,
                moved_queues=moved_queues(one),
                source=one.source,
            )
            for one in rebalances_observed(RebalanceEvent.objects.filter(group=instance)).order_by("at", "pk")
        ),
        batch_size=CHUNK,
    )


def rebalances_observed(events: QuerySet[RebalanceEvent]) -> QuerySet[RebalanceEvent]:
    """Leaves out what our runtime did: that is why, not what; its members are observed, too."""
    return events.exclude(source=RebalanceSource.RUNTIME)


def moved_queues(event: RebalanceEvent) -> int:
    return len(event.details.get("moves", ()))


def forget_old(now: datetime) -> None:
    ConflictTime.objects.filter(until__lt=now - CONFLICTS_KEPT).delete()
    RebalanceOfGone.objects.filter(at__lt=now - KEPT_FOR).delete()


def _since(event: ConflictsChanged, name: str, one: GroupConflict, now: datetime) -> datetime:
    """Returns since when: what became another conflict just now began to be this one now."""
    was_another = ConflictTime.objects.filter(cluster=event.cluster, group_name=name, until=now).exists()
    return now if was_another else min(one.since, now)
