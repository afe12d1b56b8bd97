"""Writes the timeline as rebalances are observed, and as instances of our own start and end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from django.db import transaction
from django.db.models.signals import post_save
from django.dispatch import receiver
from django.utils import timezone

from consumer.models import HostedGroup, InstanceLease
from consumer.signals import instance_ended, instance_started
from mqadmin.clusters.models import POLLED_KINDS, Cluster
from mqadmin.observing.signals import MembersTold, RebalanceObserved, members_told, rebalance_observed
from mqadmin.rebalances import recording, runtime
from mqadmin.rebalances.models import RebalanceEvent, RebalanceKind
from mqadmin.rebalances.signals import EventsRecorded, events_recorded

_WANTED = frozenset({"wanted_instances", "is_stopped"})


@receiver(rebalance_observed)
def record_events(event: RebalanceObserved, **_: object) -> int:
    """Returns how many rows were written."""
    if event.is_sampled:
        events = recording.events_of_samples(event.cluster.pk, event.changes.values(), event.at)
    else:
        events = recording.events_of_watch(event.cluster.pk, event.events, event.changes)
    joined = {one.group_id for one in events if one.kind == RebalanceKind.JOINED}
    return _record(event.cluster, [*events, *runtime.catch_up(event.cluster, joined, timezone.now())])


@receiver(members_told)
def record_what_moved(event: MembersTold, **_: object) -> int:
    """Our own brokers tell what moves; of others it is known by what their members say."""
    if event.cluster.kind not in POLLED_KINDS:
        return 0
    return _record(event.cluster, recording.events_of_answers(event.cluster.pk, event.groups, event.at))


@receiver([instance_started, instance_ended])
def record_instance(lease: InstanceLease, **_: object) -> None:
    _record_by_cluster(runtime.events_of_lease(lease))


@receiver(post_save, sender=HostedGroup)
def record_wanted(instance: HostedGroup, update_fields: Collection[str] | None, **_: Any) -> None:
    if update_fields is None or _WANTED.intersection(update_fields):
        _record_by_cluster(runtime.events_of_wanted(instance, timezone.now()))


def _record_by_cluster(events: Sequence[RebalanceEvent]) -> None:
    if not events:
        return  # on SQLite a transaction takes the only writer's turn, also for nothing
    by_cluster: defaultdict[Cluster, list[RebalanceEvent]] = defaultdict(list)
    for one in events:
        by_cluster[one.group.cluster].append(one)
    with transaction.atomic():
        for cluster, of_cluster in by_cluster.items():
            _record(cluster, of_cluster)


def _record(cluster: Cluster, events: Sequence[RebalanceEvent]) -> int:
    if events:
        recording.record(events)
        events_recorded.send(sender=RebalanceEvent, event=EventsRecorded(cluster, events))
    return len(events)
