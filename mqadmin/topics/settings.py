"""The settings that brokers have of a topic."""

from __future__ import annotations

from collections.abc import Callable

from mqadmin.actions.present import OnBrokers, ask_brokers, ask_for_all
from mqadmin.clusters.models import Cluster
from mqadmin.topics.rules import config_values


def settings_on_brokers(cluster: Cluster, topic: str) -> OnBrokers:
    """Asks the masters what they have of the topic. Raises ActionUnavailable."""
    return ask_brokers(
        cluster, lambda gateway, addresses, failures: gateway.topics.configs(addresses, topic, failures), config_values
    )


def all_on_brokers(cluster: Cluster) -> Callable[[str], OnBrokers]:
    """Asks the masters for all topics; returns what says of one what they have. Raises ActionUnavailable."""
    return ask_for_all(
        cluster, lambda gateway, addresses, failures: gateway.topics.tables(addresses, failures), config_values
    )
