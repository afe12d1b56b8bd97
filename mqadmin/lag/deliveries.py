"""How long deliveries took, as members of our runtime counted it in this database (`consumer/delivery/`)."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from consumer.conf import cluster_behind
from consumer.delivery.buckets import percentiles_s
from consumer.models import DeliveryHour
from mqadmin.clusters.models import Cluster

SHARES = (0.5, 0.95, 0.99)
# What a page tells: the hour that is not over, and the one before.
LATEST_HOURS = 2

Counts = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class TopicDelivery:
    """A group's delivery latency of a topic: from the broker's storing to consumed; of a retry, since it was born."""

    topic: str
    delivered: int
    p50_s: float
    p95_s: float
    p99_s: float


def delivery_counts(cluster: Cluster, hour: datetime) -> dict[tuple[str, str], Counts]:
    """Returns what was counted in an hour of each group and topic, all members together, by name."""
    return _added(cluster, {}, int(hour.timestamp()), int((hour + timedelta(hours=1)).timestamp()))


def latest_deliveries(cluster: Cluster, group: str, now: datetime) -> list[TopicDelivery]:
    """Returns the topics of a group in the last LATEST_HOURS hours, the present one included."""
    begin = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=LATEST_HOURS - 1)
    counted = _added(cluster, {"group": group}, int(begin.timestamp()), int(now.timestamp()) + 1)
    return [
        TopicDelivery(topic, sum(count for _bucket, count in counts), *percentiles_s(counts, SHARES))
        for (_group, topic), counts in counted.items()
    ]


def _added(cluster: Cluster, of: dict[str, str], since_s: int, until_s: int) -> dict[tuple[str, str], Counts]:
    name = cluster_behind(cluster.namesrv)
    if name is None:
        return {}
    rows = DeliveryHour.objects.filter(cluster=name, hour_s__gte=since_s, hour_s__lt=until_s, **of)
    added: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for group, topic, counts in rows.values_list("group", "topic", "counts").iterator():
        for bucket, count in counts:
            added[group, topic][bucket] += count
    return {key: sorted(counts.items()) for key, counts in sorted(added.items())}
