"""What pages, sockets and the REST tree read. Only the database is asked, never a broker.

They get models, with what they show of them as properties (`models.py`), put together as below. Lists are filtered,
sorted and cut by the database. An unknown cluster, topic or group raises its model's DoesNotExist
(`ObjectDoesNotExist` catches all).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from django.db.models import Aggregate, Count, F, Model, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from mqadmin.clusters.figures import Behind, Figure
from mqadmin.clusters.models import (
    NEEDS_ATTENTION,
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
from mqadmin.clusters.ordering import largest_first
from mqadmin.clusters.progress import attach_ends

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
    "groups": "reader_count",
}

M = TypeVar("M", bound=Model)
M_co = TypeVar("M_co", bound=Model, covariant=True)


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
class ListPage(Generic[M_co]):
    """One page of a list that the database filtered, sorted and cut. `number` counts from 1."""

    now: datetime
    cluster: Cluster
    rows: tuple[M_co, ...]
    number: int
    page_count: int
    total_count: int
    sort: str
    is_descending: bool
    filter: str

    @property
    def has_previous(self) -> bool:
        return self.number > 1

    @property
    def has_next(self) -> bool:
        return self.number < self.page_count


@dataclass(frozen=True, slots=True)
class TopicReader:
    """A group that reads a topic. `lag` and `behind` are those of this topic's queues; `group` has its whole lag."""

    group: Group
    lag: Figure
    behind: Behind


@dataclass(frozen=True, slots=True)
class TopicPage:
    now: datetime
    cluster: Cluster
    topic: Topic
    queues: tuple[TopicQueue, ...]
    readers: tuple[TopicReader, ...]


@dataclass(frozen=True, slots=True)
class GroupPage:
    """`members` have their `queues`. `departed`: members that left within the last day, the latest first."""

    now: datetime
    cluster: Cluster
    group: Group
    members: tuple[Member, ...]
    departed: tuple[Member, ...]
    queues: tuple[QueueOffset, ...]
    subscriptions: tuple[Subscription, ...]


def overview() -> Overview:
    """All clusters. Five queries, however many clusters there are."""
    clusters = list(Cluster.objects.with_freshness().order_by("name"))
    cards = _cards(clusters)
    return Overview(
        now=timezone.now(),
        clusters=cards,
        attention=_attention(_needing_attention(Group.objects.all()), clusters),
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


def topics(
    cluster_name: str,
    *,
    filter: str = "",
    kind: str = TopicKind.NORMAL,
    sort: str = "name",
    is_descending: bool = False,
    page: int = 1,
) -> ListPage[Topic]:
    """`kind` "" shows all kinds; an unknown `sort` sorts by name."""
    cluster = cluster_head(cluster_name)
    found = cluster.topics.all()
    if kind:
        found = found.filter(kind=kind)
    if filter:
        found = found.filter(name__icontains=filter)
    if sort == "groups":
        found = found.annotate(reader_count=_group_count(cluster))
    sort = sort if sort in TOPIC_SORTS else "name"
    cut, number, page_count, total = _cut(sorted_by(found, TOPIC_SORTS[sort], is_descending=is_descending), page)
    _count_groups(cluster, cut)
    return ListPage(
        now=timezone.now(),
        cluster=cluster,
        rows=tuple(cut),
        number=number,
        page_count=page_count,
        total_count=total,
        sort=sort,
        is_descending=is_descending,
        filter=filter,
    )


def topic_page(cluster_name: str, topic_name: str) -> TopicPage:
    cluster = cluster_head(cluster_name)
    topic = cluster.topics.get(name=topic_name)
    _count_groups(cluster, [topic])
    found = cluster.groups.filter(queue_offsets__topic_name=topic_name).distinct().order_by("verdict_rank", "name")
    reading = list(found[:TOPIC_GROUPS_MAX])
    offsets: defaultdict[int, list[QueueOffset]] = defaultdict(list)
    for row in attach_ends(cluster.pk, QueueOffset.objects.filter(group__in=reading, topic_name=topic_name)):
        offsets[row.group_id].append(row)
    return TopicPage(
        now=timezone.now(),
        cluster=cluster,
        topic=topic,
        queues=tuple(topic.queues.order_by("broker_name", "queue_id")),
        readers=tuple(_reader(cluster, group, offsets[group.pk]) for group in reading),
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
) -> ListPage[Group]:
    """`verdict` "" shows all; an unknown `sort` sorts by verdict, the most urgent first."""
    cluster = cluster_head(cluster_name)
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
    cut, number, page_count, total = _cut(sorted_by(found, GROUP_SORTS[sort], is_descending=is_reversed), page)
    return ListPage(
        now=timezone.now(),
        cluster=cluster,
        rows=tuple(cut),
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
    cluster = cluster_head(cluster_name)
    group = cluster.groups.get(name=group_name)
    queues = attach_ends(cluster.pk, group.queue_offsets.order_by("topic_name", "broker_name", "queue_id"))
    members = list(group.members.filter(left_at=None).order_by("client_id"))
    for member in members:
        member.queues = [queue for queue in queues if queue.owner == member.client_id]
    departed = group.members.filter(left_at__gte=now - DEPARTED_WITHIN).order_by("-left_at")[:DEPARTED_MAX]
    return GroupPage(
        now=now,
        cluster=cluster,
        group=group,
        members=tuple(members),
        departed=tuple(departed),
        queues=tuple(queues),
        subscriptions=tuple(group.subscriptions.filter(ended_at=None).order_by("topic_name", "client_id")),
    )


def _cards(clusters: Sequence[Cluster]) -> tuple[ClusterCard, ...]:
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
    brokers: defaultdict[int, list[Broker]] = defaultdict(list)
    for broker in Broker.objects.filter(cluster__in=clusters):
        brokers[broker.cluster_id].append(broker)
    return tuple(
        _card(cluster, group_sums.get(cluster.pk, {}), topic_sums.get(cluster.pk, {}), brokers[cluster.pk])
        for cluster in clusters
    )


def _sums_by_cluster(found: QuerySet[Any], **sums: Aggregate) -> dict[int, dict[str, Any]]:
    """Cluster's primary key → its sums. A cluster without rows is absent."""
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
    )


def _needing_attention(found: QuerySet[Group]) -> QuerySet[Group]:
    return found.filter(is_system=False, verdict__in=NEEDS_ATTENTION)


def _attention(needing: QuerySet[Group], clusters: Sequence[Cluster]) -> tuple[Group, ...]:
    """The worst first, each with its cluster."""
    by_id = {cluster.pk: cluster for cluster in clusters}
    found = list(needing.order_by("verdict_rank", largest_first("lag"), "cluster__name", "name")[:ATTENTION_MAX])
    for group in found:
        group.cluster = by_id[group.cluster_id]
    return tuple(found)


def _reader(cluster: Cluster, group: Group, rows: Sequence[QueueOffset]) -> TopicReader:
    counted = [row for row in rows if row.lag is not None and row.is_subscribed is not False]
    waiting = [behind for row in counted if (behind := row.behind).since is not None]
    return TopicReader(
        group=group,
        lag=Figure(
            sum(row.lag or 0 for row in counted) if counted else None,
            cluster.true_until(min((row.seen_at for row in counted), default=None)),
        ),
        behind=min(waiting, key=lambda behind: behind.since or group.seen_at, default=Behind(None, "")),
    )


def _count_groups(cluster: Cluster, topics: Sequence[Topic]) -> None:
    """Sets `group_count` of each."""
    counted = (
        QueueOffset.objects.filter(group__cluster=cluster, topic_name__in=[topic.name for topic in topics])
        .values("topic_name")
        .annotate(count=Count("group", distinct=True))
    )
    counts = {row["topic_name"]: row["count"] for row in counted}
    for topic in topics:
        topic.group_count = counts.get(topic.name, 0)


def _group_count(cluster: Cluster) -> Coalesce:
    counted = (
        QueueOffset.objects.filter(group__cluster=cluster, topic_name=OuterRef("name"))
        .values("topic_name")
        .annotate(count=Count("group", distinct=True))
        .values("count")
    )
    return Coalesce(Subquery(counted), 0)


def sorted_by(found: QuerySet[M], column: str, *, is_descending: bool) -> QuerySet[M]:
    """Rows whose figure is not known come last either way; the name decides among equals."""
    if column in ("name", "verdict_rank"):  # these are always known; saying so lets the index of the list serve
        return found.order_by(f"-{column}" if is_descending else column, "name")
    if is_descending:
        return found.order_by(largest_first(column), "name")
    return found.order_by(F(column).asc(nulls_last=True), "name")


def _cut(found: QuerySet[M], page: int) -> tuple[list[M], int, int, int]:
    """Rows of the page, its number (the nearest that exists), how many pages, how many rows in all."""
    total = found.count()
    page_count = max(1, -(-total // PAGE_SIZE))
    number = min(max(page, 1), page_count)
    first = (number - 1) * PAGE_SIZE
    return list(found[first : first + PAGE_SIZE]), number, page_count, total
