"""Topics: their list, and the page of one with the groups that read it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count
from django.utils import timezone

from mqadmin.clusters.figures import Behind, Figure
from mqadmin.clusters.models import Cluster, Group, QueueOffset, Topic, TopicKind, TopicQueue
from mqadmin.clusters.progress import attach_ends
from mqadmin.clusters.selectors.lists import ListPage
from mqadmin.clusters.selectors.of_clusters import cluster_head
from mqadmin.clusters.selectors.sorted_rows import Narrowing, SortedRows

# More groups than a topic's page can show with use.
TOPIC_GROUPS_MAX = 100

# Name of a sort in the address → column.
TOPIC_SORTS = {
    "name": "name",
    "messages": "message_count",
    "in": "in_per_s",
    "queues": "read_queue_count",
    "last": "last_stored_at",
    "groups": "reader_count",
}


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


def topics(
    cluster_name: str,
    *,
    filter: str = "",
    kind: str = TopicKind.NORMAL,
    sort: str = "name",
    is_descending: bool = False,
    page: int = 1,
    further: Narrowing[Topic] | None = None,
) -> ListPage[Topic]:
    """Reads a page of topics. `kind` "" shows all kinds; an unknown `sort` sorts by name.

    `further` leaves out more, by what other subjects know.
    """
    cluster = cluster_head(cluster_name)
    sort = sort if sort in TOPIC_SORTS else "name"
    found = topic_rows(cluster, filter=filter, kind=kind, sort=sort, is_descending=is_descending)
    if further is not None:
        found = further(cluster, found)
    return found.page(cluster, page, sort=sort, is_descending=is_descending, filter=filter)


def topic_rows(
    cluster: Cluster, *, filter: str = "", kind: str = TopicKind.NORMAL, sort: str = "name", is_descending: bool = False
) -> SortedRows[Topic]:
    """Returns the rows of the list of topics, to be cut. `sort` is one of TOPIC_SORTS."""
    found = cluster.topics.all()
    if kind:
        found = found.filter(kind=kind)
    if filter:
        found = found.filter(name__icontains=filter)
    return SortedRows(
        found,
        TOPIC_SORTS[sort],
        is_descending,
        lambda rows: _count_groups(cluster, rows),
        counts=(lambda: _group_counts(cluster)) if sort == "groups" else None,
    )


def topic_head(cluster_name: str, topic_name: str) -> Topic:
    return cluster_head(cluster_name).topics.get(name=topic_name)


def topic_page(cluster_name: str, topic_name: str) -> TopicPage:
    cluster = cluster_head(cluster_name)
    topic = cluster.topics.get(name=topic_name)
    _count_groups(cluster, [topic])
    found = cluster.groups.filter(queue_offsets__topic_name=topic_name).distinct().order_by("verdict_rank", "name")
    reading = {group.pk: group for group in found[:TOPIC_GROUPS_MAX]}
    offsets: defaultdict[int, list[QueueOffset]] = defaultdict(list)
    for row in attach_ends(cluster.pk, QueueOffset.objects.filter(group__in=reading, topic_name=topic_name)):
        row.group = reading[row.group_id]
        offsets[row.group_id].append(row)
    return TopicPage(
        now=timezone.now(),
        cluster=cluster,
        topic=topic,
        queues=tuple(topic.queues.order_by("broker_name", "queue_id")),
        readers=tuple(_reader(cluster, group, offsets[group.pk]) for group in reading.values()),
    )


def _reader(cluster: Cluster, group: Group, rows: Sequence[QueueOffset]) -> TopicReader:
    counted = [row for row in rows if row.lag is not None and row.is_subscribed is not False]
    waiting = [behind for row in counted if (behind := row.behind).since is not None]
    return TopicReader(
        group=group,
        lag=Figure(
            sum(row.lag or 0 for row in counted) if counted else None,
            cluster.true_until(
                min((row.seen_at for row in counted), default=None), {row.broker_name for row in counted}
            ),
        ),
        behind=min(waiting, key=lambda behind: behind.since or group.seen_at, default=Behind(None, "")),
    )


def _count_groups(cluster: Cluster, topics: Sequence[Topic]) -> None:
    """Sets `group_count` of each."""
    counts = _group_counts(cluster, topic_name__in=[topic.name for topic in topics])
    for topic in topics:
        topic.group_count = counts.get(topic.name, 0)


def _group_counts(cluster: Cluster, **which: Collection[str]) -> dict[str, int]:
    """Returns topic → how many groups read it; a topic that none reads is absent."""
    rows = QueueOffset.objects.filter(group__cluster=cluster, **which).values("topic_name")
    return dict(rows.annotate(count=Count("group", distinct=True)).values_list("topic_name", "count").order_by())
