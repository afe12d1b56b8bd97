"""Events of our own runtime for the timeline: instances that started, stopped or died, and another wanted number.

Hosting says when an instance starts or ends; a group that runs for the first time is not observed by then, so what its
instances did is written when its first member is (`catch_up`). Each step of an instance is written once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from consumer.conf import cluster_behind
from consumer.hosting.supervision import PROCESS_GONE, SILENT
from consumer.models import HostedGroup, InstanceLease
from mqadmin.clusters.models import Cluster, Group
from mqadmin.rebalances.models import RebalanceEvent, RebalanceKind, RebalanceSource

# A member is observed within seconds of its instance's start; an older instance was there before the group was.
CATCHES_UP = timedelta(minutes=10)
# Instances of a group that are read together.
LEASES_MAX = 200


def events_of_lease(lease: InstanceLease) -> list[RebalanceEvent]:
    """Returns what of the instance is not in the timeline yet, for each cluster of the console that has its group."""
    groups = _shown(lease.group)
    return _unwritten(event for group in groups for event in _events(group, lease))


def events_of_wanted(row: HostedGroup, at: datetime) -> list[RebalanceEvent]:
    """Returns that another number of instances is wanted, or none; nothing where the timeline says so already."""
    details = {"wanted": row.wanted_instances, "is_stopped": row.is_stopped}
    events = []
    for group in _shown(row):
        last = group.rebalance_events.filter(kind=RebalanceKind.SCALED).order_by("-at", "-pk").first()
        if last is None or last.details != details:
            events.append(_event(group, at, RebalanceKind.SCALED, "", details, f"scaled:{at.isoformat()}"))
    return events


def catch_up(cluster: Cluster, group_ids: Collection[int], now: datetime) -> list[RebalanceEvent]:
    """Returns what the instances of these groups did lately that is not in the timeline yet."""
    behind = cluster_behind(cluster.namesrv)
    if behind is None or not group_ids:
        return []
    groups = {group.name: group for group in Group.objects.filter(pk__in=group_ids)}
    recent = Q(started_at__gte=now - CATCHES_UP) | Q(ended_at__gte=now - CATCHES_UP)
    leases = InstanceLease.objects.filter(recent, group__cluster=behind, group__group__in=groups).select_related(
        "group"
    )
    return _unwritten(
        event
        for lease in leases.order_by("-started_at")[:LEASES_MAX]
        for event in _events(groups[lease.group.group], lease)
    )


def _shown(row: HostedGroup) -> list[Group]:
    found = Group.objects.filter(name=row.group).select_related("cluster")
    return [group for group in found if cluster_behind(group.cluster.namesrv) == row.cluster]


def _events(group: Group, lease: InstanceLease) -> Iterator[RebalanceEvent]:
    """Yields start and end. An instance that was withdrawn before it ran did nothing."""
    if lease.started_at is None or not lease.client_id:
        return
    details = {"worker": lease.worker, "reason": ""}
    kind = RebalanceKind.INSTANCE_STARTED
    yield _event(group, lease.started_at, kind, lease.client_id, details, f"lease:{lease.pk}:started")
    if lease.ended_at is not None:
        has_died = lease.is_failure or lease.end_reason in (PROCESS_GONE, SILENT)
        kind = RebalanceKind.INSTANCE_DIED if has_died else RebalanceKind.INSTANCE_STOPPED
        details = {"worker": lease.worker, "reason": lease.end_reason}
        yield _event(group, lease.ended_at, kind, lease.client_id, details, f"lease:{lease.pk}:ended")


def _event(
    group: Group, at: datetime, kind: RebalanceKind, client_id: str, details: dict[str, Any], key: str
) -> RebalanceEvent:
    return RebalanceEvent(
        cluster_id=group.cluster_id,
        group=group,
        at=at,
        kind=kind,
        client_id=client_id,
        details=details,
        source=RebalanceSource.RUNTIME,
        source_key=key,
    )


def _unwritten(events: Iterable[RebalanceEvent]) -> list[RebalanceEvent]:
    found = list(events)
    rows = RebalanceEvent.objects.filter(
        cluster__in={event.cluster_id for event in found},
        group__in={event.group_id for event in found},
        source_key__in=[event.source_key for event in found],
    )
    written = set(rows.values_list("group_id", "source_key")) if found else set()
    return [event for event in found if (event.group_id, event.source_key) not in written]
