"""Rebalance events for pages: newest first, cut by a cursor."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from mqadmin.clusters.models import Group
from mqadmin.clusters.selectors.newest_first import read_cursor, rows_behind, write_cursor
from mqadmin.rebalances.models import RebalanceEvent

PAGE_SIZE = 50
# Marked on one curve: more are a surface.
MOMENTS_MAX = 200


@dataclass(frozen=True, slots=True)
class RebalanceRow:
    """`kind`: joined, left, lost, gone, subscription_changed, queues_moved.

    `details` by kind: joined, left, lost, gone: {"member_count": after it}; subscription_changed: {"topics": [{"topic",
    "before", "after"}]}, "" for "not subscribed"; queues_moved: {"moves": [{"topic", "broker", "queue_id", "from",
    "to"}]} with client ids, "" for none. `source`: watch (reported by the broker) or poll (found between two samples).
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


def moments(group: Group, since: datetime, until: datetime) -> list[datetime]:
    """Returns when something of the group changed, MOMENTS_MAX at most, the newest first."""
    events = RebalanceEvent.objects.filter(cluster_id=group.cluster_id, group=group, at__gte=since, at__lte=until)
    return list(events.order_by("-at").values_list("at", flat=True)[:MOMENTS_MAX])


def of_cluster(cluster_id: int, *, before: str = "", size: int = PAGE_SIZE) -> RebalancePage:
    return _page(RebalanceEvent.objects.filter(cluster_id=cluster_id), before, size)


def cursor_of(row: RebalanceRow) -> str:
    """Returns what to hand back as `before` for the events that came before this one."""
    return write_cursor(row.at, row.id)


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
