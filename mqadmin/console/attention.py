"""What needs somebody now, as lines of a list: silent clusters, schedulers nobody drives, groups in trouble."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse
from django.utils.translation import gettext

from mqadmin.clusters.models import ClusterState
from mqadmin.clusters.shapes import AttentionItem, BrokerRow, ClusterHead
from mqadmin.console.figures import count_text

UNWELL = (ClusterState.PARTIAL, ClusterState.UNREACHABLE)


@dataclass(frozen=True, slots=True)
class AttentionLine:
    """`status` names a mark; `cluster` "" where the line is about the cluster itself."""

    key: str
    status: str
    url: str
    name: str
    cluster: str
    words: str
    note: str
    since: datetime | None


def cluster_lines(heads: Iterable[ClusterHead]) -> Iterator[AttentionLine]:
    for head in heads:
        if head.state in UNWELL:
            yield AttentionLine(
                key=f"cluster:{head.name}",
                status=head.state,
                url=reverse("cluster", args=[head.name]),
                name=head.name,
                cluster="",
                words=head.last_error or gettext("Its figures are those of its last answer."),
                note="",
                since=head.state_since,
            )


def scheduler_lines(cluster_name: str, brokers: Iterable[BrokerRow]) -> Iterator[AttentionLine]:
    for broker in brokers:
        if broker.scheduler is not None and not broker.scheduler.driver:
            yield AttentionLine(
                key=f"scheduler:{cluster_name}/{broker.name}",
                status="not_running",
                url=reverse("cluster", args=[cluster_name]),
                name=gettext("scheduler of %(broker)s") % {"broker": broker.name},
                cluster=cluster_name,
                words=gettext("No worker runs it: delayed messages and retries wait."),
                note="",
                since=broker.scheduler.since,
            )


def group_lines(items: Iterable[AttentionItem]) -> Iterator[AttentionLine]:
    for item in items:
        yield AttentionLine(
            key=f"group:{item.cluster_name}/{item.group_name}",
            status=item.verdict.verdict,
            url=reverse("group", args=[item.cluster_name, item.group_name]),
            name=item.group_name,
            cluster=item.cluster_name,
            words=item.verdict.reason,
            note=_lag_note(item),
            since=item.verdict.since,
        )


def _lag_note(item: AttentionItem) -> str:
    if item.lag.value is None:
        return gettext("lag unknown")
    return gettext("lag %(lag)s") % {"lag": count_text(int(item.lag.value))}
