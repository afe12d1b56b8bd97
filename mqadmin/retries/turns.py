"""Whose delay queues are read, and by whom: one worker at a time reads those of a cluster, and no sooner than due.

A broker that is watched and told nothing since its queues were read to their ends is not asked, and nothing is written
of it (`watching.py`); others are asked in every cycle.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db.models import F, Q

from mqadmin.clusters.claims import is_free
from mqadmin.clusters.models import Broker, Cluster, ClusterState
from mqadmin.retries import watching
from mqadmin.retries.models import RetryReading
from remoting.wire.bodies.route import MASTER_ID

# Beat comes every 15 s, and may be early; a task that is late must not read again what another has just read.
READ_EVERY = timedelta(seconds=10)
# More than a step takes where nothing answers: 20 s for the ends of the queues, 10 s of reading and 20 s for the last
# round of it. For so long a worker that was killed keeps others from the cluster.
CLAIMED_FOR = timedelta(seconds=90)
# The follower renews its lease every 5 s; without it a row that stands may be one that nobody keeps.
VOUCHED_FOR = timedelta(seconds=15)


def clusters_in_turn() -> Iterator[Cluster]:
    """Returns the clusters that may answer, those first that were not read for longest."""
    clusters = Cluster.objects.with_freshness().exclude(state=ClusterState.UNREACHABLE)
    yield from clusters.order_by(F("retry_reading__read_at").asc(nulls_first=True), "pk")


def to_ask(cluster: Cluster, now: datetime) -> list[Broker]:
    """Returns the masters to whose delay queues something may have come; the cluster was read `with_freshness`."""
    masters = list(cluster.brokers.filter(broker_id=int(MASTER_ID)).order_by("name"))
    until = watching.watched_until(cluster)
    if until is None or now - until >= VOUCHED_FOR:
        return masters
    read = {row.broker_name: (row.boot, row.revision) for row in cluster.delay_reads.exclude(read_until=None)}
    return [broker for broker in masters if watching.has_news(cluster, broker, *read.get(broker.name, ("", 0)))]


@contextmanager
def claimed(cluster: Cluster, now: datetime) -> Iterator[bool]:
    """Claims the reading of a cluster until the block ends; gives False where another worker has it, or just had it."""
    RetryReading.objects.get_or_create(cluster=cluster)
    until = now + CLAIMED_FOR
    is_due = Q(read_at=None) | Q(read_at__lte=now - READ_EVERY)
    free = RetryReading.objects.filter(is_free(now), is_due, cluster=cluster)
    is_claimed = free.update(claimed_until=until, read_at=now) > 0
    try:
        yield is_claimed
    finally:
        if is_claimed:
            RetryReading.objects.filter(cluster=cluster, claimed_until=until).update(claimed_until=None)
