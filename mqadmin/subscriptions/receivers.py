"""Has groups compared again whose members or subscriptions were observed to change, and their members asked.

Each receiver returns how many rows it wrote (`mqadmin/observing/signals.py`).
"""

from __future__ import annotations

from django.dispatch import receiver

from mqadmin.clusters.models import Group
from mqadmin.observing.signals import GroupsChanged, RebalanceObserved, groups_changed, rebalance_observed
from mqadmin.subscriptions import asking, judging
from mqadmin.subscriptions.models import GroupConflict


@receiver(groups_changed)
def compare_members(event: GroupsChanged, **_: object) -> int:
    """Only groups of several members can be in conflict, and those that were."""
    several = Group.objects.filter(pk__in=event.group_ids, member_count__gt=1, is_system=False)
    were = GroupConflict.objects.filter(group__in=event.group_ids)
    ids = {*several.values_list("pk", flat=True), *were.values_list("pk", flat=True)}
    return judging.judge(event.cluster, ids, event.at) if ids else 0


@receiver(rebalance_observed)
def ask_where_something_changed(event: RebalanceObserved, **_: object) -> int:
    return asking.make_due(change.group_id for change in event.changes.values()) if event.changes else 0
