"""Writes objectives: one that is changed ends at that moment, so that what held before stays known."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from mqadmin.clusters.models import Cluster, Group
from mqadmin.objectives.models import Objective


def keep(
    cluster: Cluster, group: str, lag_s: int | None, lag: int | None, now: datetime, *, is_declared: bool = False
) -> bool:
    """Writes what holds from now on for a name or pattern; `lag_s` None: nothing. Tells whether that is a change.

    All groups of the cluster are judged anew: which ones the name concerns follows from all objectives together.
    """
    with transaction.atomic():
        rows = Objective.objects.select_for_update().filter(cluster=cluster, group=group, is_declared=is_declared)
        present = rows.filter(valid_until=None).first()
        if (present.lag_s, present.lag) == (lag_s, lag) if present else lag_s is None:
            return False
        rows.filter(valid_until=None).update(valid_until=now)
        if lag_s is not None:
            Objective.objects.create(
                cluster=cluster, group=group, is_declared=is_declared, lag_s=lag_s, lag=lag, valid_from=now
            )
        Group.objects.filter(cluster=cluster, is_system=False).update(due_at=now)
    return True


def keep_declared(cluster: Cluster, declared: Mapping[str, int], now: datetime) -> int:
    """Writes what listeners' code says, in seconds by the group's name; returns how many have changed."""
    known = Objective.objects.filter(cluster=cluster, is_declared=True, valid_until=None)
    names = {*declared, *known.values_list("group", flat=True)}
    return sum(keep(cluster, name, declared.get(name), None, now, is_declared=True) for name in sorted(names))
