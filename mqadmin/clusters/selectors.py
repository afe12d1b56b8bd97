"""What pages, sockets and the REST tree read. Only the database is asked, never a broker.

Lists are filtered, sorted and cut by the database. An unknown cluster, topic or group raises its model's DoesNotExist
(`ObjectDoesNotExist` catches all).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db.models import Aggregate, Count, F, Model, OrderBy, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from mqadmin.clusters import rows
from mqadmin.clusters.models import (
    Broker,
    Cluster,
    Group,
    Member,
    QueueOffset,
    Subscription,
    Topic,
    TopicKind,
    TopicQueue,
)
from mqadmin.clusters.shapes import (
    AttentionItem,
    BrokerRow,
    ClusterCard,
    ClusterHead,
    ClusterPage,
    Figure,
    GroupPage,
    GroupRow,
    ListPage,
    Overview,
    QueueRow,
    TopicPage,
    TopicRow,
)
from mqadmin.lag.models import LagHistory
from mqadmin.lag.verdicts import NEEDS_ATTENTION

PAGE_SIZE = 40
ATTENTION_MAX = 20
DEPARTED_WITHIN = timedelta(days=1)
DEPARTED_MAX = 20
# More groups than a topic's page can show with use.
TOPIC_GROUPS_MAX = 100

# Name of a sort in the address → column.
GROUP_SORTS = {
    "verdict": "verdict_rank",
    "name": "name",
    "lag": "lag",
    "behind": "behind_since",
    "in": "in_per_s",
    "out": "out_per_s",
    "members": "member_count",
}
TOPIC_SORTS = {
    "name": "name",
    "messages": "message_count",
    "in": "in_per_s",
    "queues": "read_queue_count",
    "last": "last_stored_at",
    "groups": "group_count",
}

M = TypeVar("M", bound=Model)


def overview() -> Overview:
    """All clusters. Five queries, however many clusters there are."""
    now = timezone.now()
    cards = _cards(list(Cluster.objects.order_by("name")), now)
    return Overview(
        now=now,
        clusters=cards,
        attention=_attention(_needing_attention(Group.objects.all())),
        attention_count=sum(card.attention_count for card in cards),
    )


def cluster_names() -> list[str]:
    return list(Cluster.objects.order_by("name").values_list("name", flat=True))


def existing(names: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those of (cluster, group) that exist; group "" stands for the cluster itself. Two queries at most."""
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


def cluster_head(cluster_name: str) -> ClusterHead:
    return rows.head(Cluster.objects.get(name=cluster_name))


def cluster_page(cluster_name: str) -> ClusterPage:
    now = timezone.now()
    cluster = Cluster.objects.get(name=cluster_name)
    return ClusterPage(
        now=now,
        card=_cards([cluster], now)[0],
        brokers=tuple(rows.broker_row(broker) for broker in cluster.brokers.order_by("name", "broker_id")),
        attention=_attention(_needing_attention(cluster.groups.all())),
    )


def topics(
    cluster_name: str,
    *,
    filter: str = "",
    kind: str = TopicKind.NORMAL,
    sort: str = "name",
    is_descending: bool = False,
    page: int = 1,
) -> ListPage[TopicRow]:
    """`kind` "" shows all kinds; an unknown `sort` sorts by name."""
    cluster = Cluster.objects.get(name=cluster_name)
    found = cluster.topics.all()
    if kind:
        found = found.filter(kind=kind)
    if filter:
        found = found.filter(name__icontains=filter)
    if sort == "groups":
        found = found.annotate(group_count=_group_count(cluster))
    sort = sort if sort in TOPIC_SORTS else "name"
    cut, number, page_count, total = _cut(_sorted(found, TOPIC_SORTS[sort], is_descending), page)
    counts = _group_counts(cluster, [topic.name for topic in cut])
    return ListPage(
        now=timezone.now(),
        cluster=rows.head(cluster),
        rows=tuple(rows.topic_row(cluster, topic, counts.get(topic.name, 0)) for topic in cut),
        number=number,
        page_count=page_count,
        total_count=total,
        sort=sort,
        is_descending=is_descending,
        filter=filter,
    )


def topic_page(cluster_name: str, topic_name: str) -> TopicPage:
    now = timezone.now()
    cluster = Cluster.objects.get(name=cluster_name)
    topic = cluster.topics.get(name=topic_name)
    queues = TopicQueue.objects.filter(topic=topic).order_by("broker_name", "queue_id")
    found = cluster.groups.filter(queue_offsets__topic_name=topic_name).distinct().order_by("verdict_rank", "name")
    reading = list(found[:TOPIC_GROUPS_MAX])
    of_groups: defaultdict[str, list[QueueRow]] = defaultdict(list)
    for queue in QueueOffset.objects.filter(group__in=reading, topic_name=topic_name).select_related("group"):
        of_groups[queue.group.name].append(rows.queue_row(cluster, queue))
    counts = _group_counts(cluster, [topic_name])
    return TopicPage(
        now=now,
        cluster=rows.head(cluster),
        topic=rows.topic_row(cluster, topic, counts.get(topic_name, 0)),
        queues=tuple(rows.topic_queue_row(cluster, queue) for queue in queues),
        readers=tuple(rows.topic_reader(group, of_groups[group.name]) for group in _group_rows(cluster, reading, now)),
    )


def groups(
    cluster_name: str,
    *,
    filter: str = "",
    verdict: str = "",
    is_system_shown: bool = False,
    sort: str = "verdict",
    is_descending: bool = False,
    page: int = 1,
) -> ListPage[GroupRow]:
    """`verdict` "" shows all; an unknown `sort` puts first what needs somebody."""
    now = timezone.now()
    cluster = Cluster.objects.get(name=cluster_name)
    found = cluster.groups.all()
    if not is_system_shown:
        found = found.filter(is_system=False)
    if filter:
        found = found.filter(name__icontains=filter)
    if verdict:
        found = found.filter(verdict=verdict)
    sort = sort if sort in GROUP_SORTS else "verdict"
    # The longest behind is the one with the earliest moment.
    is_reversed = is_descending != (sort == "behind")
    cut, number, page_count, total = _cut(_sorted(found, GROUP_SORTS[sort], is_reversed), page)
    return ListPage(
        now=now,
        cluster=rows.head(cluster),
        rows=_group_rows(cluster, cut, now),
        number=number,
        page_count=page_count,
        total_count=total,
        sort=sort,
        is_descending=is_descending,
        filter=filter,
    )


def verdict_counts(cluster_name: str) -> dict[str, int]:
    """How many groups have which verdict, without those of the system; a verdict that none has is absent."""
    cluster = Cluster.objects.get(name=cluster_name)
    counted = cluster.groups.filter(is_system=False).values("verdict").order_by("verdict").annotate(count=Count("pk"))
    return {row["verdict"]: row["count"] for row in counted}


def group_page(cluster_name: str, group_name: str) -> GroupPage:
    now = timezone.now()
    cluster = Cluster.objects.get(name=cluster_name)
    group = cluster.groups.get(name=group_name)
    queues = tuple(
        rows.queue_row(cluster, queue)
        for queue in QueueOffset.objects.filter(group=group).order_by("topic_name", "broker_name", "queue_id")
    )
    members = Member.objects.filter(group=group)
    departed = members.filter(left_at__gte=now - DEPARTED_WITHIN).order_by("-left_at")[:DEPARTED_MAX]
    subscriptions = Subscription.objects.filter(group=group, ended_at=None).order_by("topic_name", "client_id")
    return GroupPage(
        now=now,
        cluster=rows.head(cluster),
        group=_group_rows(cluster, [group], now)[0],
        settings=rows.group_settings(group),
        members=rows.member_rows(cluster, members.filter(left_at=None).order_by("client_id"), queues),
        departed=rows.member_rows(cluster, departed, ()),
        queues=queues,
        subscriptions=tuple(rows.subscription_row(cluster, subscription) for subscription in subscriptions),
    )


def _cards(clusters: Sequence[Cluster], now: datetime) -> tuple[ClusterCard, ...]:
    """One card per cluster, in their order. Three queries."""
    group_sums = _sums_by_cluster(
        Group.objects.filter(cluster__in=clusters, is_system=False),
        count=Count("pk"),
        attention=Count("pk", filter=Q(verdict__in=NEEDS_ATTENTION)),
        lag=Sum("lag"),
        out_per_s=Sum("out_per_s"),
    )
    topic_sums = _sums_by_cluster(
        Topic.objects.filter(cluster__in=clusters, kind=TopicKind.NORMAL),
        count=Count("pk"),
        in_per_s=Sum("in_per_s"),
    )
    brokers: defaultdict[int, list[BrokerRow]] = defaultdict(list)
    for broker in Broker.objects.filter(cluster__in=clusters):
        brokers[broker.cluster_id].append(rows.broker_row(broker))
    return tuple(
        _card(cluster, group_sums.get(cluster.pk, {}), topic_sums.get(cluster.pk, {}), brokers[cluster.pk], now)
        for cluster in clusters
    )


def _sums_by_cluster(found: QuerySet[Any], **sums: Aggregate) -> dict[int, dict[str, Any]]:
    """Cluster's primary key → its sums. A cluster without rows is absent."""
    return {row["cluster_id"]: row for row in found.values("cluster_id").order_by("cluster_id").annotate(**sums)}


def _card(
    cluster: Cluster,
    group_sums: dict[str, Any],
    topic_sums: dict[str, Any],
    brokers: Sequence[BrokerRow],
    now: datetime,
) -> ClusterCard:
    return ClusterCard(
        head=rows.head(cluster),
        broker_count=len(brokers),
        answering_broker_count=sum(broker.is_answering for broker in brokers),
        topic_count=topic_sums.get("count", 0),
        group_count=group_sums.get("count", 0),
        attention_count=group_sums.get("attention", 0),
        lag=Figure(group_sums.get("lag"), cluster.last_synced_at),
        in_per_s=Figure(topic_sums.get("in_per_s"), cluster.last_synced_at),
        out_per_s=Figure(group_sums.get("out_per_s"), cluster.last_synced_at),
        history=rows.lag_points(cluster.lag_history, now),
    )


def _needing_attention(found: QuerySet[Group]) -> QuerySet[Group]:
    return found.filter(is_system=False, verdict__in=NEEDS_ATTENTION)


def _attention(needing: QuerySet[Group]) -> tuple[AttentionItem, ...]:
    worst_first = needing.select_related("cluster").order_by(
        "verdict_rank", F("lag").desc(nulls_last=True), "cluster__name", "name"
    )
    return tuple(rows.attention_item(group) for group in worst_first[:ATTENTION_MAX])


def _group_rows(cluster: Cluster, found: list[Group], now: datetime) -> tuple[GroupRow, ...]:
    packed = dict(LagHistory.objects.filter(group__in=found).values_list("group_id", "samples"))
    return tuple(rows.group_row(cluster, group, packed.get(group.pk, b""), now) for group in found)


def _group_counts(cluster: Cluster, topic_names: list[str]) -> dict[str, int]:
    counted = (
        QueueOffset.objects.filter(group__cluster=cluster, topic_name__in=topic_names)
        .values("topic_name")
        .annotate(count=Count("group", distinct=True))
    )
    return {row["topic_name"]: row["count"] for row in counted}


def _group_count(cluster: Cluster) -> Coalesce:
    counted = (
        QueueOffset.objects.filter(group__cluster=cluster, topic_name=OuterRef("name"))
        .values("topic_name")
        .annotate(count=Count("group", distinct=True))
        .values("count")
    )
    return Coalesce(Subquery(counted), 0)


def _sorted(found: QuerySet[M], column: str, is_descending: bool) -> QuerySet[M]:
    """Rows whose figure is not known come last either way; the name decides among equals."""
    order = OrderBy(F(column), descending=is_descending, nulls_last=True)
    return found.order_by(order, "name")


def _cut(found: QuerySet[M], page: int) -> tuple[list[M], int, int, int]:
    """Rows of the page, its number (the nearest that exists), how many pages, how many rows in all."""
    total = found.count()
    page_count = max(1, -(-total // PAGE_SIZE))
    number = min(max(page, 1), page_count)
    first = (number - 1) * PAGE_SIZE
    return list(found[first : first + PAGE_SIZE]), number, page_count, total
