"""Signal receivers: publish to open pages what the subjects signal, once it is committed."""

from __future__ import annotations

from django.dispatch import receiver

from mqadmin.clusters.models import Group
from mqadmin.lag.signals import GroupsMeasured, groups_measured
from mqadmin.live.events import Change, ChangeKind, publish_after_commit
from mqadmin.observing.signals import ReachabilityChanged, TopicsChanged, reachability_changed, topics_changed
from mqadmin.rebalances.signals import EventsRecorded, events_recorded


@receiver(reachability_changed)
def send_cluster(event: ReachabilityChanged, **_: object) -> None:
    publish_after_commit([Change(ChangeKind.CLUSTER, event.cluster.name)])


@receiver(topics_changed)
def send_topics(event: TopicsChanged, **_: object) -> None:
    publish_after_commit([Change(ChangeKind.TOPICS, event.cluster.name)])


@receiver(groups_measured)
def send_groups(event: GroupsMeasured, **_: object) -> None:
    name = event.cluster.name
    changes = [Change(ChangeKind.GROUP, name, group.name, group.revision) for group in event.groups]
    publish_after_commit([*changes, Change(ChangeKind.GROUPS, name)])


@receiver(events_recorded)
def send_rebalances(event: EventsRecorded, **_: object) -> None:
    name = event.cluster.name
    groups = Group.objects.filter(pk__in={one.group_id for one in event.events}).values_list("name", flat=True)
    changes = [Change(ChangeKind.REBALANCE, name, group) for group in groups]
    publish_after_commit([*changes, Change(ChangeKind.REBALANCES, name)])
