"""Signal receivers: make an event of what the subjects signal. Each is recorded once its transaction has committed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.dispatch import receiver
from django.utils import timezone

from mqadmin.alerts.conditions import Subject
from mqadmin.alerts.signals import AlertsTurned, TurnedAlert, alerts_turned
from mqadmin.clusters.models import Group
from mqadmin.deadletter_rules.signals import FailureRaised, failure_raised
from mqadmin.deadletters.signals import DeadLettersIndexed, dead_letters_indexed
from mqadmin.events.kinds import EventKind, NewEvent
from mqadmin.events.recording import record_after_commit
from mqadmin.lag.signals import GroupsMeasured, groups_measured
from mqadmin.observing.signals import ReachabilityChanged, reachability_changed
from mqadmin.rebalances.models import RebalanceEvent, RebalanceKind
from mqadmin.rebalances.signals import EventsRecorded, events_recorded
from mqadmin.replays.models import ReplayJob
from mqadmin.replays.signals import ReplayMoved, replay_moved
from mqadmin.subscriptions.models import GroupConflict
from mqadmin.subscriptions.signals import ConflictsChanged, conflicts_changed

# Of the failures that dead letters belong to; one step of the index hardly ever has more.
FAILURES_TOLD_MAX = 20
# Alerts of one rule that turn at once in one cluster and are told one by one; more have one cause, and are one event.
ALERTS_APART_MAX = 20
# Of those that are told as one: names and ids.
ALERTS_NAMED_MAX = 20
_REPLAY_COUNTS = ("total", "waiting", "sending", "sent", "skipped", "refused", "unknown", "dead_again")


@receiver(reachability_changed)
def record_cluster(event: ReachabilityChanged, **_: object) -> None:
    cluster = event.cluster
    data = {
        "state": cluster.state,
        "since": _text(cluster.state_since),
        "brokers_away": sorted(cluster.brokers_away),
        "error": cluster.last_error,
    }
    record_after_commit([NewEvent(EventKind.CLUSTER, cluster.name, "", timezone.now(), data)])


@receiver(groups_measured)
def record_measured(event: GroupsMeasured, **_: object) -> None:
    cluster, now = event.cluster.name, timezone.now()
    turned = [
        NewEvent(EventKind.VERDICT, cluster, turn.group.name, now, _verdict(turn.group, turn.was, now))
        for turn in event.turned
    ]
    crossed = [
        NewEvent(EventKind.OBJECTIVE, cluster, group.name, now, _objective(group, now)) for group in event.crossed
    ]
    record_after_commit([*turned, *crossed])


@receiver(events_recorded)
def record_rebalances(event: EventsRecorded, **_: object) -> None:
    names = dict(Group.objects.filter(pk__in={one.group_id for one in event.events}).values_list("pk", "name"))
    record_after_commit(
        [
            NewEvent(EventKind.REBALANCE, event.cluster.name, names[one.group_id], one.at, _rebalance(one))
            for one in event.events
        ]
    )


@receiver(conflicts_changed)
def record_conflicts(event: ConflictsChanged, **_: object) -> None:
    rows = GroupConflict.objects.filter(group__cluster=event.cluster, group__name__in=event.groups)
    conflicts = {row.group.name: row for row in rows.select_related("group")}
    record_after_commit(_conflicts(event.cluster.name, event.groups, conflicts))


@receiver(dead_letters_indexed)
def record_dead_letters(event: DeadLettersIndexed, **_: object) -> None:
    failures = sorted(event.failure_ids)
    data = {"count": event.count, "failure_count": len(failures), "failures": failures[:FAILURES_TOLD_MAX]}
    record_after_commit([NewEvent(EventKind.DEAD_LETTERS, event.cluster.name, event.group_name, timezone.now(), data)])


@receiver(failure_raised)
def record_raised(event: FailureRaised, **_: object) -> None:
    data = {
        "rule": event.rule.name,
        "failure": event.failure.pk,
        "failure_class": event.failure.failure_class,
        "dead_count": event.dead_count,
        "is_new": event.is_new,
    }
    name, group = event.rule.cluster.name, event.failure.group_name
    record_after_commit([NewEvent(EventKind.FAILURE_RAISED, name, group, timezone.now(), data)])


@receiver(replay_moved)
def record_replay(event: ReplayMoved, **_: object) -> None:
    """Reads the job again: who moved it by an update has an older one at hand."""
    job = ReplayJob.objects.select_related("cluster").get(pk=event.job.pk)
    counts = {f"{name}_count": getattr(job, f"{name}_count") for name in _REPLAY_COUNTS}
    data = {"replay": job.pk, "state": job.state, "problem": job.problem, **counts}
    record_after_commit([NewEvent(EventKind.REPLAY, job.cluster.name, job.group_name, timezone.now(), data)])


@receiver(alerts_turned)
def record_alerts(event: AlertsTurned, **_: object) -> None:
    alike: dict[tuple[str, str, bool], list[TurnedAlert]] = {}
    for one in event.turned:
        alike.setdefault((one.rule, one.turning, one.is_silenced), []).append(one)
    told: list[NewEvent] = []
    for some in alike.values():
        parts = [[one] for one in some] if len(some) <= ALERTS_APART_MAX else [some]
        told += [_alerts(event.cluster, part) for part in parts]
    record_after_commit(told)


def _verdict(group: Group, was: str, now: datetime) -> dict[str, Any]:
    return {
        "verdict": group.verdict,
        "was": was,
        "rule": group.verdict_rule,
        "numbers": group.verdict_numbers,
        "lag": group.lag,
        "waiting_s": _waiting_s(group, now),
        "member_count": group.member_count,
    }


def _objective(group: Group, now: datetime) -> dict[str, Any]:
    return {
        "is_beyond": group.beyond_objective_since is not None,
        "since": _text(group.beyond_objective_since),
        "allowed_lag_s": group.allowed_lag_s,
        "allowed_lag": group.allowed_lag,
        "lag": group.lag,
        "waiting_s": _waiting_s(group, now),
    }


def _rebalance(event: RebalanceEvent) -> dict[str, Any]:
    """Returns what is told of it. Of queues that moved it is how many: REST has which."""
    data: dict[str, Any] = {"what": event.kind, "client_id": event.client_id, "source": event.source}
    match event.kind:
        case RebalanceKind.QUEUES_MOVED:
            data["moved_count"] = len(event.details.get("moves", ()))
        case RebalanceKind.SUBSCRIPTION_CHANGED:
            data["topics"] = [one["topic"] for one in event.details.get("topics", ())]
        case RebalanceKind.INSTANCE_STARTED | RebalanceKind.INSTANCE_STOPPED | RebalanceKind.INSTANCE_DIED:
            data |= {"worker": event.details.get("worker"), "reason": event.details.get("reason")}
        case RebalanceKind.SCALED:
            data |= {"wanted": event.details.get("wanted"), "is_stopped": event.details.get("is_stopped")}
        case _:
            data["member_count"] = event.details.get("member_count")
    return data


def _conflicts(cluster: str, groups: Iterable[str], conflicts: dict[str, GroupConflict]) -> list[NewEvent]:
    now = timezone.now()
    return [NewEvent(EventKind.CONFLICT, cluster, name, now, _conflict(conflicts.get(name))) for name in groups]


def _conflict(row: GroupConflict | None) -> dict[str, Any]:
    if row is None:
        return {"is_in_conflict": False}
    return {
        "is_in_conflict": True,
        "conflict": row.kind,
        "topic": row.topic_name,
        "odd_count": row.odd_count,
        "member_count": row.member_count,
        "since": _text(row.since),
    }


def _alerts(cluster: str, alike: Sequence[TurnedAlert]) -> NewEvent:
    """Returns the event of alerts of one rule to which the same happened."""
    first, is_one = alike[0], len(alike) == 1
    named = alike[:ALERTS_NAMED_MAX]
    data = {
        "what": first.turning,
        "rule": first.rule,
        "about": first.about,
        "subject": first.subject,
        "count": len(alike),
        "names": [one.name for one in named],
        "alerts": [one.id for one in named],
        "since": _text(min(one.since for one in alike)),
        "is_silenced": first.is_silenced,
    }
    if is_one:
        data |= {"reading": dict(first.reading), "by": first.by}
    group = first.name if is_one and first.subject == Subject.GROUP else ""
    return NewEvent(EventKind.ALERT, cluster, group, first.at, data)


def _waiting_s(group: Group, now: datetime) -> float | None:
    if group.behind_since is None:
        return None
    return round((group.behind.seen_until(now) - group.behind_since).total_seconds(), 3)


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
