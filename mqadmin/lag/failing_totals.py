"""Reads how much the topics of retries and of dead letters of groups hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.db.models import Count, Sum

from mqadmin.clusters.bulk import chunks
from mqadmin.clusters.models import Cluster, Topic
from mqadmin.lag.failing import QUEUES_MAX, TOTAL_MAX, Totals
from remoting.wire.names import dlq_topic, retry_topic

# What a topic that is not there holds, and over how many queues.
_NO_TOPIC = (0, 0)
Ends = Mapping[str, tuple[int | None, int]]


def topic_ends(cluster: Cluster, groups: Iterable[str]) -> Ends | None:
    """Returns by topic how much was ever written to it (None: not known), over how many queues.

    Returns None where the cluster's topics are not known yet: then one that is missing may be there.
    """
    names = [topic for group in groups for topic in (retry_topic(group), dlq_topic(group))]
    found: dict[str, tuple[int | None, int]] = {}
    for some in chunks(names):
        rows = Topic.objects.filter(cluster=cluster, name__in=some).order_by()
        for name, total, count in rows.values_list("name").annotate(Sum("queues__max_offset"), Count("queues")):
            found[name] = (total, count)
    return found if found or cluster.topics.exists() else None


def totals_of(group: str, consumed: int | None, ends: Ends | None) -> Totals | None:
    """Returns the totals of one group; None while they are not known.

    A topic of retries of which nothing was consumed yet is not asked for on Apache's clusters: it counts as empty.
    """
    if ends is None:
        return None
    dead, dead_queues = ends.get(dlq_topic(group), _NO_TOPIC)
    retried, retry_queues = ends.get(retry_topic(group), _NO_TOPIC)
    if dead is None:
        return None
    return Totals(
        dead=_bounded(dead, TOTAL_MAX),
        retried=_bounded(retried or 0, TOTAL_MAX),
        consumed=_bounded(consumed or 0, TOTAL_MAX),
        dead_queue_count=_bounded(dead_queues, QUEUES_MAX),
        retry_queue_count=_bounded(retry_queues, QUEUES_MAX),
    )


def _bounded(count: int, most: int) -> int:
    """Clamps what brokers tell to what is kept: -1 stands for an offset that was never committed."""
    return min(max(0, count), most)
