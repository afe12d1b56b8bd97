"""The settings that brokers have of a topic."""

from __future__ import annotations

from mqadmin.actions.present import OnBrokers, ask_brokers
from mqadmin.clusters.models import Cluster
from mqadmin.topics.rules import config_values


def settings_on_brokers(cluster: Cluster, topic: str) -> OnBrokers:
    """Asks the masters what they have of the topic. Raises ActionUnavailable."""
    return ask_brokers(
        cluster, lambda gateway, addresses, failures: gateway.topics.configs(addresses, topic, failures), config_values
    )
