"""Keeps for how long members of groups did not want the same: subscriptions themselves know only what is so now."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.dispatch import receiver
from django.utils import timezone

from mqadmin.reports.models import ConflictTime
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


def forget_old(now: datetime) -> None:
    ConflictTime.objects.filter(until__lt=now - CONFLICTS_KEPT).delete()


def _since(event: ConflictsChanged, name: str, one: GroupConflict, now: datetime) -> datetime:
    """Returns since when: what became another conflict just now began to be this one now."""
    was_another = ConflictTime.objects.filter(cluster=event.cluster, group_name=name, until=now).exists()
    return now if was_another else min(one.since, now)
