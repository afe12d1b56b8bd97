"""Rebalance events for pages: newest first, cut by a cursor."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, QuerySet

from mqadmin.clusters.models import Cluster, Group
from mqadmin.clusters.selectors.newest_first import read_cursor, rows_behind, write_cursor
from mqadmin.lag import hot_window
from mqadmin.lag.hot_window import Gap
from mqadmin.lag.retention import within_window
from mqadmin.rebalances.churn import DAY, HOUR, Churn, Restlessness, churn
from mqadmin.rebalances.models import RebalanceEvent, RebalanceSource
from mqadmin.rebalances.retention import KEPT_FOR

PAGE_SIZE = 50
# Marked on one curve: more are a surface.
MOMENTS_MAX = 200
# Read of the last day, the newest: a group with more is called churning by far fewer.
CHURN_EVENTS_MAX = 5_000
# Of a cluster: those with the highest score of the last hour.
RESTLESS_MAX = 5
# Groups with the most events of the hour, which are weighed then.
_WEIGHED_MAX = 20
# Drawn on one page, the newest; more are a matter of the cluster's, not of the timeline's.
GAPS_MAX = 50


@dataclass(frozen=True, slots=True)
class RebalanceRow:
    """`kind`: joined, left, lost, gone, subscription_changed, queues_moved; by our runtime: instance_started,
    instance_stopped, instance_died, scaled.

    `details` by kind; joined, left, lost, gone: {"member_count": after it}; subscription_changed: {"topics": [{"topic",
    "before", "after"}]}, "" for "not subscribed"; queues_moved: {"moves": [{"topic", "broker", "queue_id", "from",
    "to"}]} with client ids, "" for none, and once judged "pause": {"at_least_s", "at_most_s", "is_over", "topic",
    "broker", "queue_id"}, null where the queues were not sampled (`pauses.Pause`); instance_…: {"worker", "reason"};
    scaled: {"wanted", "is_stopped"}. What was sampled has "since", too, where it is known: it came after that moment.
    `source`: watch (reported by the broker), poll (found between two samples) or runtime.
    """

    id: int
    group_name: str
    at: datetime
    kind: str
    client_id: str
    details: dict[str, Any]
    source: str


@dataclass(frozen=True, slots=True)
class RebalancePage:
    """`next_cursor` "" at the end; hand it back as `before`."""

    rows: tuple[RebalanceRow, ...]
    next_cursor: str


def of_group(cluster_id: int, group_name: str, *, before: str = "", size: int = PAGE_SIZE) -> RebalancePage:
    events = RebalanceEvent.objects.filter(cluster_id=cluster_id, group__name=group_name)
    return _page(events, before, size)


def are_kept(since: datetime, now: datetime) -> bool:
    """Tells whether events of that moment have not been removed for their age."""
    return since >= now - KEPT_FOR


def moments(group: Group, since: datetime, until: datetime) -> list[datetime]:
    """Returns when the group's members or queues changed, MOMENTS_MAX at most, the newest first."""
    of_group = RebalanceEvent.objects.filter(cluster_id=group.cluster_id, group=group, at__gte=since, at__lte=until)
    events = of_group.exclude(source=RebalanceSource.RUNTIME)
    return list(events.order_by("-at").values_list("at", flat=True)[:MOMENTS_MAX])


def churn_of(group: Group, now: datetime) -> Churn:
    """Returns how restless the group is."""
    events = RebalanceEvent.objects.filter(cluster_id=group.cluster_id, group=group, at__gte=now - DAY)
    return churn(events.order_by("-at").values_list("at", "kind")[:CHURN_EVENTS_MAX], now)


def restless_groups(cluster: Cluster, now: datetime) -> list[tuple[str, Churn]]:
    """Returns the groups that are not calm, of those with the most events of the last hour; the most restless first."""
    recent = RebalanceEvent.objects.filter(cluster=cluster, at__gte=now - HOUR).values("group")
    most = recent.annotate(event_count=Count("pk")).order_by("-event_count", "group")[:_WEIGHED_MAX]
    group_ids = [row["group"] for row in most]
    events: defaultdict[int, list[tuple[datetime, str]]] = defaultdict(list)
    of_day = RebalanceEvent.objects.filter(cluster=cluster, group__in=group_ids, at__gte=now - DAY).order_by("-at")
    for group_id, at, kind in of_day.values_list("group_id", "at", "kind")[:CHURN_EVENTS_MAX]:
        events[group_id].append((at, kind))
    names = dict(Group.objects.filter(pk__in=group_ids).values_list("pk", "name"))
    weighed = [(names[group_id], churn(events[group_id], now)) for group_id in names]
    found = [(name, one) for name, one in weighed if one.restlessness != Restlessness.CALM]
    return sorted(found, key=lambda one: (-one[1].hour.score, -one[1].day.score, one[0]))[:RESTLESS_MAX]


def gaps(cluster: Cluster, page: RebalancePage, now: datetime, *, before: str = "") -> list[Gap]:
    """Returns when the cluster was not sampled within what the page shows, the newest first, GAPS_MAX at most.

    What follows each other is one gap. The page reaches from its cursor, or now, to its last event; the last page
    reaches as far back as events are kept.
    """
    position = read_cursor(before)
    until = position[0] if position else now
    since = page.rows[-1].at if page.next_cursor else now - KEPT_FOR
    found = hot_window.gaps(cluster, since, until)
    if position:
        # What reaches into the page before stands there.
        found = [gap for gap in found if gap.until_s < int(until.timestamp())]
    return _joined(found)[:GAPS_MAX]


def recent_gaps(cluster: Cluster, now: datetime) -> list[Gap]:
    """Returns when the cluster was not sampled within the hot window, the newest first."""
    return _joined(hot_window.gaps(cluster, within_window(now - KEPT_FOR, now), now))


def of_cluster(cluster_id: int, *, before: str = "", size: int = PAGE_SIZE) -> RebalancePage:
    return _page(RebalanceEvent.objects.filter(cluster_id=cluster_id), before, size)


def cursor_of(row: RebalanceRow) -> str:
    """Returns what to hand back as `before` for the events that came before this one."""
    return write_cursor(row.at, row.id)


def _joined(found: list[Gap]) -> list[Gap]:
    """Returns gaps that come oldest first as one where they touch and are alike; the newest first."""
    joined: list[Gap] = []
    for gap in found:
        if joined and joined[-1].until_s >= gap.at_s and joined[-1][2:] == gap[2:]:
            joined[-1] = joined[-1]._replace(until_s=gap.until_s)
        else:
            joined.append(gap)
    return joined[::-1]


def _page(events: QuerySet[RebalanceEvent], before: str, size: int) -> RebalancePage:
    if position := read_cursor(before):
        events = rows_behind(events, "at", *position)
    found = list(events.select_related("group").order_by("-at", "-id")[: size + 1])
    rows = tuple(_row(event) for event in found[:size])
    return RebalancePage(rows, cursor_of(rows[-1]) if len(found) > size else "")


def _row(event: RebalanceEvent) -> RebalanceRow:
    return RebalanceRow(
        id=event.pk,
        group_name=event.group.name,
        at=event.at,
        kind=event.kind,
        client_id=event.client_id,
        details=event.details,
        source=event.source,
    )
