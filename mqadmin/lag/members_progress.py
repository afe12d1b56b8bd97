"""Reads what members said of the queues that they hold (`clusters/held_queues.py`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from django.db.models import QuerySet

from mqadmin.clusters.held_queues import read
from mqadmin.clusters.models import Group, MemberProgress
from mqadmin.lag.in_flight import Held, latest
from remoting.wire.bodies.message_queue import MessageQueue


def held_queues(group_ids: Collection[int]) -> dict[int, dict[MessageQueue, Held]]:
    """Returns by group what its members that are online said last of their queues."""
    if not group_ids:
        return {}
    rows = progress_online(group_ids)
    told: defaultdict[int, list[Held]] = defaultdict(list)
    for group_id, told_at, timeout_s, queues in rows.values_list(
        "member__group_id", "told_at", "consume_timeout_s", "queues"
    ):
        told[group_id] += [Held(one, told_at, timeout_s) for one in read(queues).values()]
    return {group_id: latest(of_group) for group_id, of_group in told.items()}


def progress_of_members(group: Group) -> dict[int, MemberProgress]:
    """Returns by the key of the member what those said that are online."""
    return {row.pk: row for row in progress_online([group.pk])}


def progress_online(group_ids: Iterable[int]) -> QuerySet[MemberProgress]:
    """Returns what those members of the groups said that are online."""
    return MemberProgress.objects.filter(member__group__in=list(group_ids), member__left_at=None)
