"""Asks the brokers what they tell of their run: three requests to each, once a minute, of clusters that answer.

Clusters are asked one after another, a cluster's brokers at once. A broker that does not answer keeps its row as it
was; `/metrics` leaves out rows that are older than three samples.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from mqadmin.clusters.models import Broker, Cluster, ClusterState
from mqadmin.metrics.models import BrokerRuntime
from mqadmin.observing.gateway import Failures, GatewayError, ask

logger = logging.getLogger(__name__)

INTERVAL_S = 60
FRESH_FOR = timedelta(seconds=3 * INTERVAL_S)
_ASKED = (ClusterState.REACHABLE, ClusterState.PARTIAL)


def sample_all(now: datetime) -> int:
    """Returns how many brokers answered."""
    return sum(_sample(cluster, now) for cluster in Cluster.objects.filter(state__in=_ASKED))


def _sample(cluster: Cluster, now: datetime) -> int:
    brokers = {broker.address: broker for broker in Broker.objects.filter(cluster=cluster)}
    failures = Failures()
    try:
        found = ask(cluster.namesrv, lambda gateway: gateway.runtimes(brokers, cluster.rocketmq_name, failures))
    except GatewayError as error:
        logger.info("cluster %s: its brokers' figures were not read: %s", cluster.name, error)
        return 0
    for address, runtime in found.items():
        fields = {
            "figures": runtime.figures,
            "put_per_s": runtime.put_per_s,
            "get_per_s": runtime.get_per_s,
            "seen_at": now,
        }
        BrokerRuntime.objects.update_or_create(broker=brokers[address], defaults=fields)
    return len(found)
