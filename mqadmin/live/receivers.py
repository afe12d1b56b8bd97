"""Signal receivers: publish to open pages what the subjects signal, once it is committed."""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_save
from django.dispatch import receiver

from mqadmin.actions import registry
from mqadmin.alerts.signals import AlertsChanged, alerts_changed
from mqadmin.audit.models import AuditEntry, Outcome
from mqadmin.clusters.models import Group
from mqadmin.deadletter_rules.signals import FailureRaised, failure_raised
from mqadmin.deadletters.signals import DeadLettersIndexed, dead_letters_indexed
from mqadmin.events.signals import events_recorded as numbered_events_recorded
from mqadmin.lag.signals import GroupsMeasured, groups_measured
from mqadmin.live.events import Change, ChangeKind, publish_after_commit, wake_event_feeds
from mqadmin.observing.signals import ReachabilityChanged, TopicsChanged, reachability_changed, topics_changed
from mqadmin.rebalances.signals import EventsRecorded, events_recorded, pauses_judged
from mqadmin.replays.signals import ReplayMoved, replay_moved
from mqadmin.reports.signals import RunChanged, run_changed
from mqadmin.subscriptions.signals import ConflictsChanged, conflicts_changed


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


@receiver([events_recorded, pauses_judged])
def send_rebalances(event: EventsRecorded, **_: object) -> None:
    name = event.cluster.name
    groups = Group.objects.filter(pk__in={one.group_id for one in event.events}).values_list("name", flat=True)
    changes = [Change(ChangeKind.REBALANCE, name, group) for group in groups]
    publish_after_commit([*changes, Change(ChangeKind.REBALANCES, name)])


@receiver(dead_letters_indexed)
def send_dead_letters(event: DeadLettersIndexed, **_: object) -> None:
    name = event.cluster.name
    publish_after_commit(
        [Change(ChangeKind.DEAD_LETTERS, name, event.group_name), Change(ChangeKind.DEAD_LETTERS, name)]
    )


@receiver(replay_moved)
def send_replays(event: ReplayMoved, **_: object) -> None:
    publish_after_commit([Change(ChangeKind.REPLAYS, event.job.cluster.name)])


@receiver(failure_raised)
def send_raised(event: FailureRaised, **_: object) -> None:
    publish_after_commit([Change(ChangeKind.CLUSTER, event.rule.cluster.name)])


@receiver(conflicts_changed)
def send_conflicts(event: ConflictsChanged, **_: object) -> None:
    name = event.cluster.name
    changes = [Change(ChangeKind.GROUP, name, group) for group in event.groups]
    publish_after_commit([*changes, Change(ChangeKind.GROUPS, name)])


@receiver(alerts_changed)
def send_alerts(event: AlertsChanged, **_: object) -> None:
    groups = [Change(ChangeKind.ALERTS, event.cluster, group) for group in event.groups]
    publish_after_commit([*groups, Change(ChangeKind.ALERTS, event.cluster)])


@receiver(run_changed)
def send_reports(event: RunChanged, **_: object) -> None:
    publish_after_commit([Change(ChangeKind.REPORTS, name) for name in event.clusters])


@receiver(numbered_events_recorded)
def wake_feeds(**_: object) -> None:
    wake_event_feeds()


@receiver(post_save, sender=AuditEntry)
def send_run(instance: AuditEntry, **_: Any) -> None:
    """Publishes what a run was about: owners and notes are known to no broker, so nobody would observe the change."""
    action = registry.ACTIONS.get(instance.action)
    if action is None or instance.outcome == Outcome.REFUSED:
        return
    changes = {
        "topic": [Change(ChangeKind.TOPICS, instance.cluster)],
        "group": [
            Change(ChangeKind.GROUP, instance.cluster, instance.subject),
            Change(ChangeKind.GROUPS, instance.cluster),
        ],
        "broker": [Change(ChangeKind.CLUSTER, instance.cluster)],
        "cluster": [Change(ChangeKind.CLUSTER, instance.subject)],
        "failure": [Change(ChangeKind.DEAD_LETTERS, instance.cluster)],
        "dead_letter": [Change(ChangeKind.DEAD_LETTERS, instance.cluster)],
        "rule": [Change(ChangeKind.DEAD_LETTERS, instance.cluster)] if instance.cluster else [],
        "silence": [Change(ChangeKind.ALERTS, instance.cluster)],
    }
    publish_after_commit(changes.get(action.subject, []))
