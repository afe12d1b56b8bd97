"""Observed events to rows of the timeline; each fact once, however often it is read.

A watch reports joins, departures and changed subscriptions one by one, and a moved queue as one fact per queue; those
of one answer and group become one event with all its moves. Polling tells only who was there at two samples.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from mqadmin.observing.observation import ObservedEvent
from mqadmin.observing.signals import MembershipChange
from mqadmin.rebalances.models import RebalanceEvent, RebalanceKind, RebalanceSource
from remoting.wire.bodies.watch import (
    ASSIGNMENT_CHANGED,
    MEMBER_JOINED,
    MEMBER_LEFT,
    MEMBER_LOST,
    SUBSCRIPTION_CHANGED,
)

KEPT_FOR = timedelta(days=7)
# Rows deleted in one statement, so that pruning never holds SQLite's only writer for long.
PRUNE_BATCH = 5000

_KINDS = {
    MEMBER_JOINED: RebalanceKind.JOINED,
    MEMBER_LEFT: RebalanceKind.LEFT,
    MEMBER_LOST: RebalanceKind.LOST,
    SUBSCRIPTION_CHANGED: RebalanceKind.SUBSCRIPTION_CHANGED,
    ASSIGNMENT_CHANGED: RebalanceKind.QUEUES_MOVED,
}
_DEPARTURES = (RebalanceKind.LEFT, RebalanceKind.LOST, RebalanceKind.GONE)


def events_of_watch(
    cluster_id: int, observed: Iterable[ObservedEvent], changes: Mapping[str, MembershipChange]
) -> list[RebalanceEvent]:
    """Returns what a watch reported, oldest first. Events of a group without a row are left out: it was deleted."""
    by_group: defaultdict[str, list[ObservedEvent]] = defaultdict(list)
    for fact in observed:
        by_group[fact.group].append(fact)
    events = []
    for group, facts in by_group.items():
        if change := changes.get(group):
            events += _events_of_group(cluster_id, facts, change)
    return sorted(events, key=lambda event: event.at)


def events_of_samples(cluster_id: int, changes: Iterable[MembershipChange], at: datetime) -> list[RebalanceEvent]:
    """Returns who appeared and disappeared between two samples, and whose subscription is another."""
    events = []
    for change in changes:
        for kind, client_ids in ((RebalanceKind.JOINED, change.joined), (RebalanceKind.GONE, change.gone)):
            for client_id in client_ids:
                facts: dict[str, Any] = {"member_count": change.member_count}
                events.append(_sampled_event(cluster_id, change.group_id, kind, client_id, facts, at))
        for client_id, topics in change.subscriptions.items():
            kind = RebalanceKind.SUBSCRIPTION_CHANGED
            facts = {"topics": [dict(topic) for topic in topics]}
            events.append(_sampled_event(cluster_id, change.group_id, kind, client_id, facts, at))
    return events


def record(events: Sequence[RebalanceEvent]) -> None:
    """Writes the events; those that are there already are left as they are."""
    RebalanceEvent.objects.bulk_create(events, ignore_conflicts=True)


def prune(now: datetime) -> int:
    """Deletes the events that are older than KEPT_FOR; returns how many."""
    count = 0
    while True:
        old = list(RebalanceEvent.objects.filter(at__lt=now - KEPT_FOR).values_list("pk", flat=True)[:PRUNE_BATCH])
        if not old:
            return count
        count += RebalanceEvent.objects.filter(pk__in=old).delete()[0]


def _events_of_group(
    cluster_id: int, observed: Sequence[ObservedEvent], change: MembershipChange
) -> list[RebalanceEvent]:
    member_count = change.member_count
    joined = {fact.client_id for fact in observed if fact.kind == MEMBER_JOINED} | set(change.joined)
    moves: list[ObservedEvent] = []
    events = []
    # Backwards: the rows say how many members there are after the last of these facts.
    for fact in reversed(observed):
        kind = _KINDS[fact.kind]
        if kind == RebalanceKind.QUEUES_MOVED:
            moves.insert(0, fact)
            continue
        if kind == RebalanceKind.SUBSCRIPTION_CHANGED and fact.client_id in joined:
            continue  # its first subscription, which joining implies
        facts: dict[str, Any] = {}
        if kind == RebalanceKind.SUBSCRIPTION_CHANGED:
            facts["topics"] = [dict(topic) for topic in change.subscriptions.get(fact.client_id, ())]
        else:
            facts["member_count"] = member_count
            if member_count is not None:
                member_count += 1 if kind in _DEPARTURES else -1
        events.append(_watched_event(cluster_id, change.group_id, kind, fact, facts))
    if moves:
        facts = {"moves": [_move(fact) for fact in moves if fact.queue is not None]}
        events.append(_watched_event(cluster_id, change.group_id, RebalanceKind.QUEUES_MOVED, moves[-1], facts))
    return events


def _move(fact: ObservedEvent) -> dict[str, Any]:
    assert fact.queue is not None
    return {
        "topic": fact.queue.topic,
        "broker": fact.queue.broker_name,
        "queue_id": fact.queue.queue_id,
        "from": fact.from_client,
        "to": fact.to_client,
    }


def _watched_event(
    cluster_id: int, group_id: int, kind: RebalanceKind, fact: ObservedEvent, facts: dict[str, Any]
) -> RebalanceEvent:
    return RebalanceEvent(
        cluster_id=cluster_id,
        group_id=group_id,
        at=fact.at,
        kind=kind,
        client_id="" if kind == RebalanceKind.QUEUES_MOVED else fact.client_id,
        facts=facts,
        source=RebalanceSource.WATCH,
        source_key=fact.key,
    )


def _sampled_event(
    cluster_id: int, group_id: int, kind: RebalanceKind, client_id: str, facts: dict[str, Any], at: datetime
) -> RebalanceEvent:
    return RebalanceEvent(
        cluster_id=cluster_id,
        group_id=group_id,
        at=at,
        kind=kind,
        client_id=client_id,
        facts=facts,
        source=RebalanceSource.POLL,
        source_key=f"{at.timestamp():.3f}:{kind}:{client_id}"[:255],
    )
