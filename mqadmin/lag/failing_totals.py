"""Reads how much the topics of retries and of dead letters of groups hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from zlib import crc32

from django.db.models import Count, Sum

from mqadmin.clusters.bulk import chunks
from mqadmin.clusters.models import Cluster, Topic
from mqadmin.lag.failing import QUEUES_MAX, TOTAL_MAX, Totals
from remoting.wire.bodies.route import MASTER_ID
from remoting.wire.names import dlq_topic, retry_topic

# What a topic that is not there holds, and over how many queues.
_NO_TOPIC = (0, 0)


@dataclass(frozen=True, slots=True)
class TopicEnds:
    """By topic how much was ever written to it (None: not known), over how many queues; `brokers`: who said so."""

    of_topics: Mapping[str, tuple[int | None, int]] = field(default_factory=dict)
    brokers: int = 0


def topic_ends(cluster: Cluster, groups: Iterable[str]) -> TopicEnds | None:
    """Returns None where the cluster's topics are not known yet: then one that is missing may be there."""
    names = [topic for group in groups for topic in (retry_topic(group), dlq_topic(group))]
    found: dict[str, tuple[int | None, int]] = {}
    for some in chunks(names):
        rows = Topic.objects.filter(cluster=cluster, name__in=some).order_by()
        for name, total, count in rows.values_list("name").annotate(Sum("queues__max_offset"), Count("queues")):
            found[name] = (total, count)
    return TopicEnds(found, _brokers(cluster)) if found or cluster.topics.exists() else None


def _brokers(cluster: Cluster) -> int:
    """Returns a digest of the brokers that have told their topics: another one where one came, went, or came back."""
    told = cluster.brokers.filter(broker_id=int(MASTER_ID), has_told_topics=True).order_by("pk")
    return crc32(repr(list(told.values_list("pk", flat=True))).encode())


def totals_of(group: str, consumed: int | None, ends: TopicEnds | None) -> Totals | None:
    """Returns the totals of one group; None while they are not known.

    A topic of retries of which nothing was consumed yet is not asked for on Apache's clusters: it counts as empty.
    """
    if ends is None:
        return None
    dead, dead_queues = ends.of_topics.get(dlq_topic(group), _NO_TOPIC)
    retried, retry_queues = ends.of_topics.get(retry_topic(group), _NO_TOPIC)
    if dead is None:
        return None
    return Totals(
        dead=_bounded(dead, TOTAL_MAX),
        retried=_bounded(retried or 0, TOTAL_MAX),
        consumed=_bounded(consumed or 0, TOTAL_MAX),
        dead_queue_count=_bounded(dead_queues, QUEUES_MAX),
        retry_queue_count=_bounded(retry_queues, QUEUES_MAX),
        brokers=ends.brokers,
    )


def _bounded(count: int, most: int) -> int:
    """Clamps what brokers tell to what is kept: -1 stands for an offset that was never committed."""
    return min(max(0, count), most)
