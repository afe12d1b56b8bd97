"""When groups and topics are measured: as soon as something that bears on them was observed, and when they fall due.

Each receiver returns how many rows it wrote (`mqadmin/observing/signals.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Set as AbstractSet

from django.db import transaction
from django.db.models import Q
from django.db.models.signals import pre_delete
from django.dispatch import receiver
from django.utils import timezone

from mqadmin.clusters.bulk import chunks
from mqadmin.clusters.models import BROADCASTING, Cluster, Group, QueueOffset, Topic
from mqadmin.lag import cluster_history, gone_groups, measuring
from mqadmin.lag.signals import GroupsMeasured, groups_measured
from mqadmin.lag.verdicts import BROKER_AWAY
from mqadmin.observing.signals import (
    Applied,
    GroupsChanged,
    GroupsCommitted,
    MembersTold,
    ObservationResumed,
    ReachabilityChanged,
    Ticked,
    TopicsChanged,
    groups_changed,
    groups_committed,
    members_told,
    observation_resumed,
    reachability_changed,
    ticked,
    topics_changed,
)
from remoting.wire.names import group_of_dlq, is_dlq_topic

# Measured at one tick, those due longest first: a tick stays short, and the others come with the next.
DUE_MAX = 500


@receiver(groups_changed)
def measure_changed_groups(event: GroupsChanged, **_: object) -> int:
    return _measure_groups(event, event.group_ids, is_changed=True)


@receiver(groups_committed)
def measure_committed_groups(event: GroupsCommitted, **_: object) -> int:
    return _measure_groups(event, event.group_ids, is_changed=True)


@receiver(topics_changed)
def measure_topics_and_their_readers(event: TopicsChanged, **_: object) -> int:
    topics = Topic.objects.filter(pk__in=event.topic_ids)
    written_count = measuring.measure_topics(event.cluster, topics, event.at, is_watched=event.is_watched)
    readers = QueueOffset.objects.filter(group__cluster=event.cluster, topic_name__in=event.grown)
    group_ids = set(readers.values_list("group_id", flat=True).distinct()) if event.grown else set()
    group_ids |= _failing_groups(event)
    written_count += _measure_groups(event, group_ids - event.named_group_ids, is_changed=False)
    return written_count + _see_again(event, group_ids | event.named_group_ids)


def _failing_groups(event: TopicsChanged) -> set[int]:
    """Returns whose messages died: nobody reads topics of dead letters."""
    names = [group_of_dlq(topic) for topic in event.grown if is_dlq_topic(topic)]
    found = (Group.objects.filter(cluster=event.cluster, name__in=some) for some in chunks(names))
    return {pk for groups in found for pk in groups.values_list("pk", flat=True)}


def _see_again(event: TopicsChanged, measured: AbstractSet[int]) -> int:
    """Renews the ages of groups whose queues were sampled and stand; measures those that still have rates to fall."""
    if not event.seen_again:
        return 0
    rows = QueueOffset.objects.filter(topic_name__in=event.seen_again)
    readers = Group.objects.filter(cluster=event.cluster, pk__in=rows.values("group"))
    rates = {pk: of_group for pk, *of_group in readers.values_list("pk", "in_per_s", "out_per_s") if pk not in measured}
    at_rest = {pk for pk, of_group in rates.items() if of_group == [0, 0]}
    return _measure_groups(event, rates.keys() - at_rest, is_changed=False) + measuring.renew_ages(at_rest)


@receiver(ticked)
def measure_what_is_due(event: Ticked, **_: object) -> int:
    """Reads three indexes, and writes nothing where nothing is due."""
    cluster, now = event.cluster, event.now
    topics = list(cluster.topics.filter(due_at__lte=now).order_by("due_at")[:DUE_MAX])
    groups = list(cluster.groups.filter(due_at__lte=now).order_by("due_at")[:DUE_MAX])
    written_count = 0
    if topics or groups:
        with transaction.atomic():
            written_count = measuring.measure_topics(cluster, topics, now, is_watched=event.is_watched)
            measured = measuring.measure_groups(cluster, groups, now, is_changed=False, is_watched=event.is_watched)
            _publish(cluster, measured)
            written_count += measured.written_count
    return written_count + cluster_history.append_due(cluster.pk, now)


@receiver(reachability_changed)
def measure_again_where_a_broker_went_or_came(event: ReachabilityChanged, **_: object) -> int:
    """Makes due what is on brokers that went away, and what was measured without one that came back.

    Rates were left as they were, and nothing may ever move that would have them counted again.
    """
    cluster, now = event.cluster, timezone.now()
    on_those_away = QueueOffset.objects.filter(group__cluster=cluster, broker_name__in=cluster.brokers_away)
    has_rate = Q(rate_base_at__isnull=False)
    concerned = Q(pk__in=on_those_away.values("group")) | Q(verdict_rule=BROKER_AWAY)
    groups = cluster.groups.filter(concerned | has_rate & ~Q(in_per_s=0, out_per_s=0))
    return groups.update(due_at=now) + cluster.topics.filter(has_rate & ~Q(in_per_s=0)).update(due_at=now)


@receiver(members_told)
def measure_again_what_waits(event: MembersTold, **_: object) -> int:
    """Makes due the groups whose members said what they hold, where that counts: messages wait, or it broadcasts."""
    told = Group.objects.filter(pk__in=[one.group_id for one in event.groups])
    return told.filter(Q(behind_since__isnull=False) | Q(message_model=BROADCASTING)).update(due_at=event.at)


@receiver(observation_resumed)
def leave_a_gap(event: ObservationResumed, **_: object) -> int:
    return cluster_history.leave_a_gap(event.cluster, event.since)


@receiver(pre_delete, sender=Group)
def keep_what_is_not_appended(instance: Group, origin: object, **_: object) -> None:
    """Of a cluster that goes nothing is kept."""
    if getattr(origin, "model", type(origin)) is Group:
        gone_groups.keep(instance, timezone.now())


def _measure_groups(event: Applied, group_ids: Collection[int], *, is_changed: bool) -> int:
    written_count = 0
    for batch in chunks(group_ids):
        groups = Group.objects.filter(pk__in=batch)
        measured = measuring.measure_groups(
            event.cluster, groups, event.at, is_changed=is_changed, is_watched=event.is_watched
        )
        _publish(event.cluster, measured)
        written_count += measured.written_count
    return written_count


def _publish(cluster: Cluster, measured: measuring.Measured) -> None:
    if measured.shown or measured.crossed:
        event = GroupsMeasured(cluster, measured.shown, measured.turned, measured.crossed)
        groups_measured.send(sender=Group, event=event)
