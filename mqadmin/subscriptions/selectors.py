"""What pages and REST read of subscriptions: a group's members compared, what changed, and groups in conflict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Q, QuerySet
from django.utils import timezone

from mqadmin.clusters.models import Cluster, Group, Subscription
from mqadmin.subscriptions.consistency import Finding, Source, Wanted, findings
from mqadmin.subscriptions.models import GroupConflict, MemberAnswer, OwnSubscription
from mqadmin.subscriptions.skipped import Skipped, skipped
from mqadmin.subscriptions.views_of_members import GroupView, group_views

# Changes that a page shows, the latest first.
HISTORY_MAX = 50
HISTORY_WITHIN = timedelta(days=30)
# Conflicts that the overview shows.
CONFLICTS_MAX = 20
# Other clusters with the same group that a page names.
ELSEWHERE_MAX = 20


class SubscriptionChange(NamedTuple):
    """`client_id` "": the broker's table for the whole group. `is_end`: from then on not subscribed so any more."""

    at: datetime
    client_id: str
    topic: str
    expression: str
    expression_type: str
    is_end: bool


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The same group on another cluster. `is_different`: it subscribes to something else there."""

    cluster: str
    member_count: int | None
    is_different: bool


@dataclass(frozen=True, slots=True)
class ComparedGroup:
    """`skipped`: what each of the findings has skipped. `reasons`: why members did not answer last, by client id."""

    view: GroupView
    findings: Sequence[Finding]
    skipped: Sequence[Skipped]
    reasons: Mapping[str, str]
    history: Sequence[SubscriptionChange]
    elsewhere: Sequence[Elsewhere]

    @property
    def unknown_count(self) -> int:
        return sum(member.source == Source.NOT_KNOWN for member in self.view.members)


def compared(group: Group, seen: QuerySet[Cluster]) -> ComparedGroup:
    """Compares the members of a group. `seen`: the clusters that may be named beside its own."""
    view = group_views([group.pk])[group.pk]
    silent = MemberAnswer.objects.filter(member__group=group, member__left_at=None).exclude(reason="")
    found = findings(view.members, view.table)
    return ComparedGroup(
        view=view,
        findings=found,
        skipped=[skipped(group, one) for one in found],
        reasons=dict(silent.values_list("member__client_id", "reason")),
        history=_history(group),
        elsewhere=_elsewhere(group, view, seen),
    )


def clusters_with(group_name: str, seen: QuerySet[Cluster]) -> list[str]:
    """Returns the names of the clusters that have a group of this name.

    All of them, though a page names ELSEWHERE_MAX: which of them have members, and so are named, changes.
    """
    rows = Group.objects.filter(name=group_name, cluster__in=seen).order_by("cluster__name")
    return list(rows.values_list("cluster__name", flat=True))


def conflicts(seen: QuerySet[Cluster]) -> list[GroupConflict]:
    """Returns those of the clusters, the longest lasting first, CONFLICTS_MAX at most."""
    rows = GroupConflict.objects.filter(group__cluster__in=seen).select_related("group", "group__cluster")
    return list(rows.order_by("since", "pk")[:CONFLICTS_MAX])


def conflict_count(seen: QuerySet[Cluster]) -> int:
    return GroupConflict.objects.filter(group__cluster__in=seen).count()


def _history(group: Group) -> list[SubscriptionChange]:
    since = timezone.now() - HISTORY_WITHIN
    changes: list[SubscriptionChange] = []
    recent = Q(first_seen_at__gte=since) | Q(ended_at__gte=since)
    rows = Subscription.objects.filter(recent, group=group).order_by("-first_seen_at")[: HISTORY_MAX * 2]
    for row in rows:
        changes += _changes(row, row.client_id, since)
    own = OwnSubscription.objects.filter(recent, member__group=group).select_related("member")
    for said in own.order_by("-first_seen_at")[: HISTORY_MAX * 2]:
        changes += _changes(said, said.member.client_id, since)
    # Of what changed at one moment, what ended did so before the other began.
    changes.sort(key=lambda one: (one.at, one.client_id, one.topic, not one.is_end), reverse=True)
    return changes[:HISTORY_MAX]


def _changes(row: Subscription | OwnSubscription, client_id: str, since: datetime) -> list[SubscriptionChange]:
    moments = [(row.first_seen_at, False)] + ([(row.ended_at, True)] if row.ended_at is not None else [])
    return [
        SubscriptionChange(at, client_id, row.topic_name, row.expression, row.expression_type, is_end)
        for at, is_end in moments
        if at >= since
    ]


def _elsewhere(group: Group, view: GroupView, seen: QuerySet[Cluster]) -> list[Elsewhere]:
    same = Group.objects.filter(name=group.name, cluster__in=seen, member_count__gt=0).exclude(pk=group.pk)
    others = list(same.select_related("cluster").order_by("cluster__name")[:ELSEWHERE_MAX])
    views = group_views([other.pk for other in others])
    mine = _meanings(view)
    return [
        Elsewhere(other.cluster.name, other.member_count, bool(mine) and _meanings(views[other.pk]) not in ({}, mine))
        for other in others
    ]


def _meanings(view: GroupView) -> dict[str, str]:
    table: Mapping[str, Wanted] = view.table or next((one.topics for one in view.members if one.topics), {})
    return {topic: wanted.meaning for topic, wanted in table.items() if not topic.startswith("%")}
