"""Clusters: the overview of all, and the page of one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Aggregate, Count, Q, QuerySet, Sum
from django.utils import timezone

from mqadmin.clusters.cluster_verdict import ClusterInput, ClusterJudgement, judge_cluster
from mqadmin.clusters.figures import Figure
from mqadmin.clusters.models import NEEDS_ATTENTION, Broker, Cluster, Group, Topic, TopicKind, Verdict
from mqadmin.clusters.ordering import largest_first

ATTENTION_MAX = 20


@dataclass(frozen=True, slots=True)
class ClusterCard:
    """A cluster with its brokers and the sums over what is in it."""

    head: Cluster
    brokers: tuple[Broker, ...]
    broker_count: int
    answering_broker_count: int
    topic_count: int
    group_count: int
    attention_count: int
    lag: Figure
    in_per_s: Figure
    out_per_s: Figure
    judgement: ClusterJudgement


@dataclass(frozen=True, slots=True)
class Overview:
    """`attention`: the most urgent groups, each with its cluster; `attention_count` of all."""

    now: datetime
    clusters: tuple[ClusterCard, ...]
    attention: tuple[Group, ...]
    attention_count: int


@dataclass(frozen=True, slots=True)
class ClusterPage:
    now: datetime
    card: ClusterCard
    brokers: tuple[Broker, ...]
    attention: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class BrokerPage:
    """The master of a name, and its slaves."""

    now: datetime
    cluster: Cluster
    brokers: tuple[Broker, ...]


def broker_page(cluster_name: str, broker_name: str) -> BrokerPage:
    """Raises Cluster.DoesNotExist, Broker.DoesNotExist."""
    cluster = cluster_head(cluster_name)
    brokers = tuple(cluster.brokers.filter(name=broker_name).order_by("broker_id"))
    if not brokers:
        raise Broker.DoesNotExist(f"{cluster_name} has no broker {broker_name}")
    return BrokerPage(timezone.now(), cluster, brokers)


def overview(among: QuerySet[Cluster] | None = None) -> Overview:
    """Reads all clusters, or some. Five queries, however many clusters there are."""
    found, groups = Cluster.objects.with_freshness(), Group.objects.all()
    if among is not None:
        found, groups = found.filter(pk__in=among.values("pk")), groups.filter(cluster__in=among.values("pk"))
    clusters = list(found.order_by("name"))
    cards = _cards(clusters)
    return Overview(
        now=timezone.now(),
        clusters=cards,
        attention=_attention(_needing_attention(groups), clusters),
        attention_count=sum(card.attention_count for card in cards),
    )


def cluster_names(among: QuerySet[Cluster] | None = None) -> list[str]:
    """Returns the names of all clusters, or of some, in order."""
    return list((Cluster.objects.all() if among is None else among).order_by("name").values_list("name", flat=True))


def existing(names: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Returns those of (cluster, group) that exist; group "" stands for the cluster itself. Two queries at most."""
    clusters = {cluster for cluster, group in names if not group}
    groups = {(cluster, group) for cluster, group in names if group}
    found: set[tuple[str, str]] = set()
    if clusters:
        found |= {(name, "") for name in Cluster.objects.filter(name__in=clusters).values_list("name", flat=True)}
    if groups:
        of_names = Group.objects.filter(
            cluster__name__in={cluster for cluster, _ in groups}, name__in={group for _, group in groups}
        )
        found |= groups & set(of_names.values_list("cluster__name", "name"))
    return found


def cluster_head(cluster_name: str) -> Cluster:
    return Cluster.objects.with_freshness().get(name=cluster_name)


def cluster_page(cluster_name: str) -> ClusterPage:
    cluster = cluster_head(cluster_name)
    return ClusterPage(
        now=timezone.now(),
        card=_cards([cluster])[0],
        brokers=tuple(cluster.brokers.order_by("name", "broker_id")),
        attention=_attention(_needing_attention(cluster.groups.all()), [cluster]),
    )


def _cards(clusters: Sequence[Cluster]) -> tuple[ClusterCard, ...]:
    """Returns one card per cluster, in their order. Three queries."""
    group_sums = _sums_by_cluster(
        Group.objects.filter(cluster__in=clusters, is_system=False),
        count=Count("pk"),
        attention=Count("pk", filter=Q(verdict__in=NEEDS_ATTENTION)),
        **{f"is_{verdict}": Count("pk", filter=Q(verdict=verdict)) for verdict in Verdict},
        lag=Sum("lag"),
        out_per_s=Sum("out_per_s"),
    )
    topic_sums = _sums_by_cluster(
        Topic.objects.filter(cluster__in=clusters, kind=TopicKind.NORMAL),
        count=Count("pk"),
        in_per_s=Sum("in_per_s"),
    )
    brokers = _brokers_by_cluster(clusters)
    return tuple(
        _card(cluster, group_sums.get(cluster.pk, {}), topic_sums.get(cluster.pk, {}), brokers[cluster.pk])
        for cluster in clusters
    )


def judgements(clusters: Sequence[Cluster]) -> dict[int, ClusterJudgement]:
    """Returns cluster's primary key → its verdict, as its page has it. Two queries."""
    groups: defaultdict[int, dict[str, int]] = defaultdict(dict)
    found = Group.objects.filter(cluster__in=clusters, is_system=False).order_by().values_list("cluster", "verdict")
    for cluster_id, verdict, count in found.annotate(count=Count("pk")):
        groups[cluster_id][verdict] = count
    brokers = _brokers_by_cluster(clusters)
    return {one.pk: _judged(one, brokers[one.pk], groups[one.pk]) for one in clusters}


def _brokers_by_cluster(clusters: Sequence[Cluster]) -> defaultdict[int, list[Broker]]:
    brokers: defaultdict[int, list[Broker]] = defaultdict(list)
    for broker in Broker.objects.filter(cluster__in=clusters):
        brokers[broker.cluster_id].append(broker)
    return brokers


def _judged(cluster: Cluster, brokers: Sequence[Broker], groups: Mapping[str, int]) -> ClusterJudgement:
    return judge_cluster(
        ClusterInput(
            state=cluster.state,
            broker_count=len(brokers),
            away_count=sum(bool(broker.last_error) for broker in brokers),
            undriven_count=sum(broker.scheduler is not None and not broker.scheduler.driver for broker in brokers),
            groups=groups,
        )
    )


def _sums_by_cluster(found: QuerySet[Any], **sums: Aggregate) -> dict[int, dict[str, Any]]:
    """Returns cluster's primary key → its sums. A cluster without rows is absent."""
    return {row["cluster_id"]: row for row in found.values("cluster_id").order_by("cluster_id").annotate(**sums)}


def _card(
    cluster: Cluster, group_sums: dict[str, Any], topic_sums: dict[str, Any], brokers: Sequence[Broker]
) -> ClusterCard:
    until = cluster.observed_until
    return ClusterCard(
        head=cluster,
        brokers=tuple(brokers),
        broker_count=len(brokers),
        answering_broker_count=sum(broker.is_answering for broker in brokers),
        topic_count=topic_sums.get("count", 0),
        group_count=group_sums.get("count", 0),
        attention_count=group_sums.get("attention", 0),
        lag=Figure(group_sums.get("lag"), until),
        in_per_s=Figure(topic_sums.get("in_per_s"), until),
        out_per_s=Figure(group_sums.get("out_per_s"), until),
        judgement=_judged(cluster, brokers, {verdict: group_sums.get(f"is_{verdict}", 0) for verdict in Verdict}),
    )


def _needing_attention(found: QuerySet[Group]) -> QuerySet[Group]:
    return found.filter(is_system=False, verdict__in=NEEDS_ATTENTION)


def _attention(needing: QuerySet[Group], clusters: Sequence[Cluster]) -> tuple[Group, ...]:
    """Reads the groups that need attention, the worst first, each with its cluster."""
    by_id = {cluster.pk: cluster for cluster in clusters}
    found = list(needing.order_by("verdict_rank", largest_first("lag"), "cluster__name", "name")[:ATTENTION_MAX])
    for group in found:
        group.cluster = by_id[group.cluster_id]
    return tuple(found)
