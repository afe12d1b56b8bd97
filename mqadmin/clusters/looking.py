"""Which groups of a polled cluster somebody looks at: the next cycles ask for these first.

The one thing that a page writes, at most once in NOTED_EVERY for a group, and nothing where the cluster is followed.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from mqadmin.clusters.models import POLLED_KINDS, Cluster, Group

NOTED_EVERY = timedelta(seconds=30)
# A page is drawn again when something changes, and at least with each cycle that asks for its group.
LOOKED_AT_FOR = timedelta(minutes=2)


def note_looked_at(cluster: Cluster, group: Group, now: datetime) -> None:
    """Writes that somebody looks at the group's page."""
    if cluster.kind not in POLLED_KINDS or (group.looked_at and now - group.looked_at < NOTED_EVERY):
        return
    is_due = Q(looked_at=None) | Q(looked_at__lt=now - NOTED_EVERY)
    Group.objects.filter(is_due, pk=group.pk).update(looked_at=now)


def looked_at_groups(cluster: Cluster, now: datetime) -> list[str]:
    """Returns the names, the latest first."""
    seen = cluster.groups.filter(looked_at__gt=now - LOOKED_AT_FOR).order_by("-looked_at")
    return list(seen.values_list("name", flat=True))
