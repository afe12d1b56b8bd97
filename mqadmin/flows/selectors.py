"""The map of flows of a cluster or of one topic, and who is concerned by a change of a topic. Reads the database alone.

Bounded: topics that groups in trouble read come first, then those with most coming in; of a topic's groups the worst
come first. What is left out is counted. A topic costs two queries, the whole map no more than 2 × TOPICS_MAX + 8.

Brokers do not tell which topics a producer sends to, so producers are those of the cluster that were seen connected.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, F, Max, Q, QuerySet
from django.utils import timezone

from mqadmin.clusters.models import NEEDS_ATTENTION, Cluster, Group, QueueOffset, Topic, TopicKind
from mqadmin.clusters.progress import attach_ends
from mqadmin.clusters.selectors import cluster_head
from mqadmin.producers.models import SeenProducer
from remoting.wire.names import dlq_topic, retry_topic

# More rows than that are read by nobody; the filter finds the others.
TOPICS_MAX = 12
GROUPS_OF_TOPIC_MAX = 6
GROUPS_ALONE_MAX = 40
PRODUCER_GROUPS_MAX = 20
NAMES_TOLD_MAX = 10
# A producer that has not been seen for so long is not taken for one that sends.
PRODUCER_SEEN_WITHIN = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Side:
    """A retry topic or a topic of dead letters. None: not known. `count`: messages stored now."""

    topic: str
    in_per_s: float | None
    count: int | None


@dataclass(frozen=True, slots=True)
class GroupFlow:
    """A group that reads the topic. `lag` is of the topic's queues; `out_per_s` of all that the group reads.

    `retry`, `dead`: None where the group has no such topic yet.
    """

    group: Group
    lag: int | None
    out_per_s: float | None
    topic_count: int
    retry: Side | None
    dead: Side | None


@dataclass(frozen=True, slots=True)
class TopicFlow:
    """`more_count`: groups that read it and are not shown."""

    topic: Topic
    groups: tuple[GroupFlow, ...]
    more_count: int


@dataclass(frozen=True, slots=True)
class ProducerGroup:
    """Clients of a producer group that were seen connected to the cluster's brokers; `seen_at`: the last one."""

    name: str
    client_count: int
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class FlowMap:
    """`more_count`: topics that fit the filter and are not shown."""

    now: datetime
    cluster: Cluster
    producers: tuple[ProducerGroup, ...]
    topics: tuple[TopicFlow, ...]
    more_count: int


def cluster_flows(cluster_name: str, filter: str = "") -> FlowMap:
    """Returns the flows of topics whose name, or that of a group that reads them, has the filter in it."""
    cluster, now = cluster_head(cluster_name), timezone.now()
    normal = cluster.topics.filter(kind=TopicKind.NORMAL)
    if filter:
        readers = cluster.groups.filter(name__icontains=filter)
        read = QueueOffset.objects.filter(group__in=readers).values("topic_name")
        normal = normal.filter(Q(name__icontains=filter) | Q(name__in=read))
    chosen = _worst_first(cluster, normal)
    return FlowMap(
        now=now,
        cluster=cluster,
        producers=producer_groups(cluster, now),
        topics=_flows(cluster, chosen, GROUPS_OF_TOPIC_MAX),
        more_count=normal.count() - len(chosen),
    )


def topic_flows(cluster_name: str, topic_name: str) -> FlowMap:
    """Returns the flows of one topic. Raises ObjectDoesNotExist."""
    cluster, now = cluster_head(cluster_name), timezone.now()
    topic = cluster.topics.get(name=topic_name)
    return FlowMap(now, cluster, producer_groups(cluster, now), _flows(cluster, [topic], GROUPS_ALONE_MAX), 0)


def producer_groups(cluster: Cluster, now: datetime) -> tuple[ProducerGroup, ...]:
    """Returns the producers seen lately, PRODUCER_GROUPS_MAX groups at most, by name."""
    seen = SeenProducer.objects.filter(cluster=cluster, seen_at__gte=now - PRODUCER_SEEN_WITHIN)
    rows = seen.values("group").annotate(clients=Count("pk"), latest=Max("seen_at")).order_by("group")
    return tuple(ProducerGroup(row["group"], row["clients"], row["latest"]) for row in rows[:PRODUCER_GROUPS_MAX])


def readers_of(cluster: Cluster, topic_name: str) -> QuerySet[Group]:
    """Returns the groups that read a topic, the worst first."""
    # By primary key: a group with many queues of the topic is one.
    reading = QueueOffset.objects.filter(group__cluster=cluster, topic_name=topic_name).exclude(is_subscribed=False)
    return cluster.groups.filter(pk__in=reading.values("group")).order_by(
        "verdict_rank", F("lag").desc(nulls_last=True), "name"
    )


def reader_names(cluster: Cluster, topic_name: str) -> tuple[list[str], int]:
    """Returns the names of the first NAMES_TOLD_MAX groups that read a topic, and how many more there are."""
    readers = readers_of(cluster, topic_name)
    names = list(readers.values_list("name", flat=True)[:NAMES_TOLD_MAX])
    return names, readers.count() - len(names) if len(names) == NAMES_TOLD_MAX else 0


def _worst_first(cluster: Cluster, normal: QuerySet[Topic]) -> list[Topic]:
    """Returns topics read by the groups in most trouble, then those with most coming in; TOPICS_MAX at most."""
    troubled = cluster.groups.filter(is_system=False, verdict__in=NEEDS_ATTENTION).order_by("verdict_rank", "name")
    pks = list(troubled.values_list("pk", flat=True)[:TOPICS_MAX])
    read: dict[str, None] = {}
    for pk in pks:
        names = QueueOffset.objects.filter(group=pk).exclude(is_subscribed=False).values_list("topic_name", flat=True)
        read.update(dict.fromkeys(names.distinct().order_by("topic_name")[:TOPICS_MAX]))
        if len(read) >= TOPICS_MAX:
            break
    place = {name: number for number, name in enumerate(read)}
    first = sorted(normal.filter(name__in=place), key=lambda topic: place[topic.name])[:TOPICS_MAX]
    busiest = normal.exclude(pk__in=[topic.pk for topic in first])
    return [*first, *busiest.order_by(F("in_per_s").desc(nulls_last=True), "name")[: TOPICS_MAX - len(first)]]


def _flows(cluster: Cluster, topics: Sequence[Topic], groups_max: int) -> tuple[TopicFlow, ...]:
    readers = {topic.name: readers_of(cluster, topic.name) for topic in topics}
    shown = {name: list(groups[:groups_max]) for name, groups in readers.items()}
    groups = {group.pk: group for found in shown.values() for group in found}
    for group in groups.values():
        group.cluster = cluster
    rows = QueueOffset.objects.filter(group__in=groups, topic_name__in=shown).exclude(is_subscribed=False)
    lags: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for row in attach_ends(cluster.pk, rows):
        if row.lag is not None:
            lags[row.group_id, row.topic_name].append(row.lag)
    counts = dict(
        QueueOffset.objects.filter(group__in=groups)
        .exclude(is_subscribed=False)
        .exclude(topic_name__startswith="%")
        .values_list("group")
        .annotate(Count("topic_name", distinct=True))
        .order_by()
    )
    names = [name for group in groups.values() for name in (retry_topic(group.name), dlq_topic(group.name))]
    sides = {
        topic.name: Side(topic.name, topic.in_per_s, topic.message_count)
        for topic in cluster.topics.filter(name__in=names)
    }
    return tuple(
        TopicFlow(
            topic,
            tuple(
                GroupFlow(
                    group=groups[group.pk],
                    lag=sum(of_topic) if (of_topic := lags.get((group.pk, topic.name))) is not None else None,
                    out_per_s=group.out_per_s,
                    topic_count=counts.get(group.pk, 0),
                    retry=sides.get(retry_topic(group.name)),
                    dead=sides.get(dlq_topic(group.name)),
                )
                for group in shown[topic.name]
            ),
            _more(readers[topic.name], shown[topic.name], groups_max),
        )
        for topic in topics
    )


def _more(readers: QuerySet[Group], shown: Sequence[Group], groups_max: int) -> int:
    return readers.count() - len(shown) if len(shown) == groups_max else 0
