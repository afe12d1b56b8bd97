"""The list "needs attention": clusters that do not answer, schedulers that no worker runs, groups in trouble."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse
from django.utils.translation import gettext, ngettext

from mqadmin.alerts.conditions import Subject
from mqadmin.alerts.delivering import place_of
from mqadmin.alerts.models import Alert
from mqadmin.alerts.sentences import subject_words, what_words
from mqadmin.clusters.models import Broker, Cluster, ClusterState, Group
from mqadmin.console.conflict_sentences import conflict_reason
from mqadmin.console.figures import count_text
from mqadmin.console.stored_words import in_viewers_language
from mqadmin.deadletter_rules.models import RaisedFailure
from mqadmin.deadletters.subjects import failure_words
from mqadmin.lag import verdicts
from mqadmin.subscriptions.models import GroupConflict

UNWELL = (ClusterState.PARTIAL, ClusterState.UNREACHABLE)


@dataclass(frozen=True, slots=True)
class AttentionLine:
    """One entry of the list. `status` names a status mark; `cluster` is "" in an entry about the cluster itself."""

    key: str
    status: str
    url: str
    name: str
    cluster: str
    reason: str
    note: str
    since: datetime | None


def cluster_lines(heads: Iterable[Cluster]) -> Iterator[AttentionLine]:
    """Yields the clusters of which a broker or name server does not answer."""
    for head in heads:
        if head.state in UNWELL:
            yield AttentionLine(
                key=f"cluster:{head.name}",
                status=head.state,
                url=reverse("cluster", args=[head.name]),
                name=head.name,
                cluster="",
                reason=in_viewers_language(head.last_error) or gettext("Its figures are those of its last answer."),
                note="",
                since=head.state_since,
            )


def scheduler_lines(cluster_name: str, brokers: Iterable[Broker]) -> Iterator[AttentionLine]:
    """Yields the schedulers that no worker runs."""
    for broker in brokers:
        if broker.scheduler is not None and not broker.scheduler.driver:
            yield AttentionLine(
                key=f"scheduler:{cluster_name}/{broker.name}",
                status="not_running",
                url=reverse("cluster", args=[cluster_name]),
                name=gettext("scheduler of %(broker)s") % {"broker": broker.name},
                cluster=cluster_name,
                reason=gettext("No worker runs it: delayed messages and retries wait."),
                note="",
                since=broker.scheduler.since,
            )


def group_lines(groups: Iterable[Group]) -> Iterator[AttentionLine]:
    """Yields an entry for each group, with the reason of its verdict."""
    for group in groups:
        yield AttentionLine(
            key=f"group:{group.cluster.name}/{group.name}",
            status=group.verdict,
            url=reverse("group", args=[group.cluster.name, group.name]),
            name=group.name,
            cluster=group.cluster.name,
            reason=verdicts.reason(group.verdict_rule, group.verdict_numbers),
            note=_lag_note(group),
            since=group.verdict_since,
        )


def raised_lines(raised: Iterable[RaisedFailure]) -> Iterator[AttentionLine]:
    """Yields the failures that rules have raised, each with what it is and the rule's name."""
    for one in raised:
        failure, cluster = one.failure, one.failure.cluster.name
        died = ngettext("%(count)s died", "%(count)s died", one.dead_count) % {"count": count_text(one.dead_count)}
        yield AttentionLine(
            key=f"raised:{one.pk}",
            status="raised",
            url=reverse("failure", args=[cluster, failure.pk]),
            name=failure.group_name,
            cluster=cluster,
            reason=f"{failure_words(failure)} ({one.rule.name})",
            note=died,
            since=one.raised_at,
        )


def alert_lines(alerts: Iterable[Alert]) -> Iterator[AttentionLine]:
    """Yields what fires and nobody looks after yet."""
    for one in alerts:
        cluster = one.cluster.name
        is_cluster = one.subject == Subject.CLUSTER
        yield AttentionLine(
            key=f"alert:{one.pk}",
            status="firing",
            url=place_of(one),
            name=subject_words(one.rule.about, cluster, one.name),
            cluster="" if is_cluster else cluster,
            reason=what_words(one.rule.about, one.reading),
            note=one.rule.name,
            since=one.fired_at,
        )


def conflict_lines(rows: Iterable[GroupConflict]) -> Iterator[AttentionLine]:
    """Yields the groups whose members do not want the same."""
    for row in rows:
        group = row.group
        yield AttentionLine(
            key=f"conflict:{group.cluster.name}/{group.name}",
            status="differs",
            url=reverse("group_subscriptions", args=[group.cluster.name, group.name]),
            name=group.name,
            cluster=group.cluster.name,
            reason=conflict_reason(row),
            note="",
            since=row.since,
        )


def _lag_note(group: Group) -> str:
    if group.lag is None:
        return gettext("lag unknown")
    return gettext("lag %(lag)s") % {"lag": count_text(group.lag)}
