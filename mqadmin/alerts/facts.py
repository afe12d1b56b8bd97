"""Reads what rules judge: a bounded number of queries, however many groups there are.

One for all clusters, two for their verdicts, one for all groups, one for the conflicts between members, one for the
failures that were raised, one for each window in which dead letters are counted, two for all brokers; what no rule asks
for is not read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Max

from mqadmin.alerts.conditions import About, BrokerFacts, ClusterFacts, Condition, Facts, GroupFacts, Subject, matches
from mqadmin.clusters.cluster_verdict import ClusterJudgement
from mqadmin.clusters.figures import Behind, DueKind, drain, stored_pace
from mqadmin.clusters.models import POLLED_KINDS, Broker, Cluster, ClusterState, Group
from mqadmin.clusters.selectors import judgements
from mqadmin.deadletter_rules.models import RaisedFailure
from mqadmin.deadletters.models import DeadLetter
from mqadmin.metrics.models import FRESH_FOR, BrokerRuntime
from mqadmin.subscriptions.models import GroupConflict

_ROWS_AT_ONCE = 2000
_DISK_FIGURES = ("commitLogDiskRatio", "consumeQueueDiskRatio")


@dataclass(frozen=True, slots=True)
class Observed:
    """`clusters`: name → row. `by_subject`: cluster → facts, of the kinds of things that rules are about."""

    clusters: Mapping[str, Cluster]
    by_subject: Mapping[Subject, Mapping[str, list[Facts]]]


_Reader = Callable[[Mapping[int, Cluster], list[Condition], datetime], Iterator[Facts]]


def observe(conditions: Collection[Condition], now: datetime) -> Observed:
    """Returns the facts of all clusters that one of the conditions is about."""
    clusters = {one.name: one for one in Cluster.objects.with_freshness().order_by("name")}
    asked: dict[Subject, list[Condition]] = {}
    for condition in conditions:
        asked.setdefault(condition.subject, []).append(condition)
    readers: Mapping[Subject, _Reader] = {Subject.GROUP: _groups, Subject.BROKER: _brokers, Subject.CLUSTER: _clusters}
    found: dict[Subject, dict[str, list[Facts]]] = {}
    for subject, some in asked.items():
        here = {one.pk: one for name, one in clusters.items() if any(matches(wanted.clusters, name) for wanted in some)}
        found[subject] = {one.name: [] for one in here.values()}
        for facts in readers[subject](here, some, now):
            found[subject][facts.cluster].append(facts)
    return Observed(clusters, found)


def _clusters(here: Mapping[int, Cluster], conditions: list[Condition], _now: datetime) -> Iterator[ClusterFacts]:
    judged: Mapping[int, ClusterJudgement] = {}
    if any(one.about == About.CLUSTER_VERDICT for one in conditions):
        judged = judgements(list(here.values()))
    for pk, cluster in here.items():
        is_reachable = None if cluster.state == ClusterState.NEW else cluster.state != ClusterState.UNREACHABLE
        yield ClusterFacts(
            cluster=cluster.name, is_reachable=is_reachable, error=cluster.last_error, judged=judged.get(pk)
        )


def _groups(here: Mapping[int, Cluster], conditions: list[Condition], now: datetime) -> Iterator[GroupFacts]:
    abouts = {one.about for one in conditions}
    windows = {one.window_minutes for one in conditions if one.about == About.DEAD_LETTERS}
    dead = {minutes: _dead_counts(here, now - timedelta(minutes=minutes)) for minutes in windows}
    conflicts: dict[int, str] = {}
    if About.CONFLICT in abouts:
        conflicts = dict(GroupConflict.objects.filter(group__cluster__in=here).values_list("group", "kind"))
    raised = _raised(here) if About.RAISED in abouts else {}
    rows = Group.objects.filter(cluster__in=here, is_system=False).order_by("cluster", "name").values_list(
        "pk", "cluster", "name", "verdict", "verdict_rule", "verdict_numbers", "lag", "behind_since", "behind_method",
        "offsets_seen_at", "in_per_s", "out_per_s", "drains_per_s", "drain_confidence", "allowed_lag_s", "allowed_lag",
    )  # fmt: skip
    for (
        pk, cluster_id, name, verdict, rule, numbers, lag, behind_since, behind_method,
        seen_at, in_per_s, out_per_s, drains_per_s, confidence, allowed_lag_s, allowed_lag,
    ) in rows.iterator(_ROWS_AT_ONCE):  # fmt: skip
        cluster = here[cluster_id]
        raised_count, raised_dead_count = raised.get((cluster_id, name), (0, 0))
        is_sampled = cluster.kind in POLLED_KINDS and cluster.state == ClusterState.REACHABLE
        yield GroupFacts(
            cluster=cluster.name,
            name=name,
            is_known=cluster.state not in (ClusterState.NEW, ClusterState.UNREACHABLE),
            verdict=verdict,
            verdict_rule=rule,
            verdict_numbers=numbers,
            lag=lag,
            behind_s=_behind_s(Behind(behind_since, behind_method, seen_at if is_sampled else None), now),
            allowed_lag_s=allowed_lag_s,
            allowed_lag=allowed_lag,
            drain=drain(lag, in_per_s, out_per_s, stored_pace(drains_per_s, confidence)),
            dead_counts={minutes: counts.get((cluster_id, name), 0) for minutes, counts in dead.items()},
            raised_count=raised_count,
            raised_dead_count=raised_dead_count,
            conflict=conflicts.get(pk, ""),
        )


def _behind_s(behind: Behind, now: datetime) -> float:
    return 0.0 if behind.since is None else max(0.0, (behind.seen_until(now) - behind.since).total_seconds())


def _dead_counts(here: Mapping[int, Cluster], since: datetime) -> dict[tuple[int, str], int]:
    rows = DeadLetter.objects.filter(cluster__in=here, dead_at__gte=since)
    counted = rows.order_by().values_list("cluster", "group_name").annotate(count=Count("pk"))
    return {(cluster, group): count for cluster, group, count in counted}


def _raised(here: Mapping[int, Cluster]) -> dict[tuple[int, str], tuple[int, int]]:
    """Returns by group how many failures rules show that nobody has archived, and how many messages died of them."""
    rows = RaisedFailure.objects.filter(failure__cluster__in=here, failure__archived_at=None)
    by_failure = rows.order_by().values_list("failure__cluster", "failure__group_name", "failure")
    found: defaultdict[tuple[int, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
    # A failure that several rules show is one.
    for cluster, group, _failure, dead in by_failure.annotate(dead=Max("dead_count")):
        count, dead_before = found[cluster, group]
        found[cluster, group] = count + 1, dead_before + dead
    return found


def _brokers(here: Mapping[int, Cluster], conditions: list[Condition], now: datetime) -> Iterator[BrokerFacts]:
    rows = list(Broker.objects.filter(cluster__in=here, broker_id=0).order_by("cluster", "name"))
    figures: dict[int, Any] = {}
    if any(one.about == About.DISK for one in conditions):
        told = BrokerRuntime.objects.filter(broker__in=rows, seen_at__gte=now - FRESH_FOR)
        figures = dict(told.values_list("broker", "figures"))
    for row in rows:
        cluster = here[row.cluster_id]
        is_cluster_away = cluster.state == ClusterState.UNREACHABLE
        is_answering = not row.last_error and row.name not in cluster.brokers_away and not is_cluster_away
        scheduler = row.scheduler if is_answering else None
        yield BrokerFacts(
            cluster=cluster.name,
            name=row.name,
            is_answering=None if cluster.state == ClusterState.NEW else is_answering,
            late_s=_late_s(scheduler.kinds, now) if scheduler is not None else None,
            is_driven=bool(scheduler.driver) if scheduler is not None else None,
            disk_percent=_disk_percent(figures.get(row.pk)) if is_answering else None,
            error=row.last_error,
        )


def _late_s(kinds: Collection[DueKind], now: datetime) -> float:
    """Returns by how much what should be out by now is late; 0 where nothing is."""
    due = [(now - one.next_due_at).total_seconds() for one in kinds if one.next_due_at is not None]
    return max(0.0, max(due, default=0.0))


def _disk_percent(figures: Mapping[str, Any] | None) -> float | None:
    if figures is None:
        return None
    found = []
    for name in _DISK_FIGURES:
        try:
            found.append(100 * float(figures[name]))
        except (KeyError, TypeError, ValueError):
            continue
    return max((one for one in found if one >= 0), default=None)
