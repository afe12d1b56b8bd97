"""Which groups somebody looks at: their members are asked first, and of a polled cluster these groups.

Where a cluster is followed its rows are true without being asked for, but not what members alone know: what they have
in flight, how far they are, what they themselves subscribe to (`subscriptions/asking.py`).

The one thing that a page writes, at most once in NOTED_EVERY for a group.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from mqadmin.clusters.models import Cluster, Group

NOTED_EVERY = timedelta(seconds=30)
# A page is drawn again when something changes; of a polled cluster at least with each cycle that asks for its group.
LOOKED_AT_FOR = timedelta(minutes=2)


def note_looked_at(group: Group, now: datetime) -> None:
    """Writes that somebody looks at the group's page."""
    if group.looked_at and now - group.looked_at < NOTED_EVERY:
        return
    is_due = Q(looked_at=None) | Q(looked_at__lt=now - NOTED_EVERY)
    Group.objects.filter(is_due, pk=group.pk).update(looked_at=now)


def looked_at_groups(cluster: Cluster, now: datetime) -> list[str]:
    """Returns the names, the latest first."""
    seen = cluster.groups.filter(looked_at__gt=now - LOOKED_AT_FOR).order_by("-looked_at")
    return list(seen.values_list("name", flat=True))
