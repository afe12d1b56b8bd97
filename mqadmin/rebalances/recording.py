"""Observed events to rows of the timeline; each event once, however often it is read.

A watch reports joins, departures and changed subscriptions one by one, and a moved queue as one event per queue; those
of one answer and group become one row with all its moves. Polling knows only which members were there at two samples,
and what each said that it holds when it was asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from mqadmin.observing.observation import ObservedEvent
from mqadmin.observing.signals import GroupTold, MembershipChange
from mqadmin.rebalances.models import RebalanceEvent, RebalanceKind, RebalanceSource
from remoting.wire.bodies.watch import (
    ASSIGNMENT_CHANGED,
    MEMBER_JOINED,
    MEMBER_LEFT,
    MEMBER_LOST,
    SUBSCRIPTION_CHANGED,
)

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
    for one in observed:
        by_group[one.group].append(one)
    events = []
    for group, of_group in by_group.items():
        if change := changes.get(group):
            events += _events_of_group(cluster_id, of_group, change)
    return sorted(events, key=lambda event: event.at)


def events_of_samples(cluster_id: int, changes: Iterable[MembershipChange], at: datetime) -> list[RebalanceEvent]:
    """Returns which members came and went between two samples, and whose subscription changed.

    `details` name the earlier sample, where it is known when that was.
    """
    events = []
    for change in changes:
        doubt = {"since": change.since.isoformat()} if change.since is not None else {}
        for kind, client_ids in ((RebalanceKind.JOINED, change.joined), (RebalanceKind.GONE, change.gone)):
            for client_id in client_ids:
                details: dict[str, Any] = {"member_count": change.member_count, **doubt}
                events.append(_sampled_event(cluster_id, change.group_id, kind, client_id, details, at))
        for client_id, topics in change.subscriptions.items():
            kind = RebalanceKind.SUBSCRIPTION_CHANGED
            details = {"topics": [dict(topic) for topic in topics], **doubt}
            events.append(_sampled_event(cluster_id, change.group_id, kind, client_id, details, at))
    return events


def events_of_answers(cluster_id: int, groups: Iterable[GroupTold], at: datetime) -> list[RebalanceEvent]:
    """Returns which queues moved by the word of members, one row a group. It was so since `since` at the earliest."""
    return [
        _sampled_event(
            cluster_id,
            told.group_id,
            RebalanceKind.QUEUES_MOVED,
            "",
            {
                "moves": [
                    {
                        "topic": move.queue.topic,
                        "broker": move.queue.broker_name,
                        "queue_id": move.queue.queue_id,
                        "from": move.from_client,
                        "to": move.to_client,
                    }
                    for move in told.moves
                ],
                "since": told.since.isoformat() if told.since else None,
            },
            at,
        )
        for told in groups
        if told.moves
    ]


def record(events: Sequence[RebalanceEvent]) -> None:
    """Writes the events; those that are there already are left as they are."""
    RebalanceEvent.objects.bulk_create(events, ignore_conflicts=True)


def _events_of_group(
    cluster_id: int, observed: Sequence[ObservedEvent], change: MembershipChange
) -> list[RebalanceEvent]:
    member_count = change.member_count
    joined = {one.client_id for one in observed if one.kind == MEMBER_JOINED} | set(change.joined)
    moves: list[ObservedEvent] = []
    events = []
    # Backwards: the rows say how many members there are after the last of these events.
    for one in reversed(observed):
        kind = _KINDS[one.kind]
        if kind == RebalanceKind.QUEUES_MOVED:
            moves.insert(0, one)
            continue
        if kind == RebalanceKind.SUBSCRIPTION_CHANGED and one.client_id in joined:
            continue  # its first subscription, which joining implies
        details: dict[str, Any] = {}
        if kind == RebalanceKind.SUBSCRIPTION_CHANGED:
            details["topics"] = [dict(topic) for topic in change.subscriptions.get(one.client_id, ())]
        else:
            details["member_count"] = member_count
            if member_count is not None:
                member_count += 1 if kind in _DEPARTURES else -1
        events.append(_watched_event(cluster_id, change.group_id, kind, one, details))
    if moves:
        details = {"moves": [_move(one) for one in moves if one.queue is not None]}
        events.append(_watched_event(cluster_id, change.group_id, RebalanceKind.QUEUES_MOVED, moves[-1], details))
    return events


def _move(one: ObservedEvent) -> dict[str, Any]:
    assert one.queue is not None
    return {
        "topic": one.queue.topic,
        "broker": one.queue.broker_name,
        "queue_id": one.queue.queue_id,
        "from": one.from_client,
        "to": one.to_client,
    }


def _watched_event(
    cluster_id: int, group_id: int, kind: RebalanceKind, one: ObservedEvent, details: dict[str, Any]
) -> RebalanceEvent:
    return RebalanceEvent(
        cluster_id=cluster_id,
        group_id=group_id,
        at=one.at,
        kind=kind,
        client_id="" if kind == RebalanceKind.QUEUES_MOVED else one.client_id,
        details=details,
        source=RebalanceSource.WATCH,
        source_key=one.key,
    )


def _sampled_event(
    cluster_id: int, group_id: int, kind: RebalanceKind, client_id: str, details: dict[str, Any], at: datetime
) -> RebalanceEvent:
    return RebalanceEvent(
        cluster_id=cluster_id,
        group_id=group_id,
        at=at,
        kind=kind,
        client_id=client_id,
        details=details,
        source=RebalanceSource.POLL,
        source_key=f"{at.timestamp():.3f}:{kind}:{client_id}"[:255],
    )
