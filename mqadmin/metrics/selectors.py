"""Reads what brokers last told of their run."""

from __future__ import annotations

from collections.abc import Iterable

from mqadmin.clusters.models import Broker
from mqadmin.metrics.models import BrokerRuntime


def runtimes(brokers: Iterable[Broker]) -> dict[int, BrokerRuntime]:
    """Returns the last figures by the broker's primary key; a broker that told nothing yet is absent."""
    return {row.broker_id: row for row in BrokerRuntime.objects.filter(broker__in=list(brokers))}
