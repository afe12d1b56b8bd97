"""The settings that brokers have of a group, and what a new group has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mqadmin.actions.declaration import Values
from mqadmin.actions.present import OnBrokers, ask_brokers, ask_for_all
from mqadmin.clusters.models import Cluster
from mqadmin.groups.rules import SETTINGS, config_values
from remoting.wire.bodies.groups import SubscriptionGroupConfig

# Settings that `create_group` leaves alone: their name here → that of RocketMQ's `SubscriptionGroupConfig`.
FURTHER_SETTINGS: Mapping[str, str] = {
    "broker_when_slow": "which_broker_when_consume_slowly",
    "from_min": "consume_from_min_enable",
    "retry_policy": "group_retry_policy",
    "attributes": "attributes",
}


def settings_on_brokers(cluster: Cluster, group: str) -> OnBrokers:
    """Asks the masters what they have of the group. Raises ActionUnavailable."""
    return ask_brokers(
        cluster, lambda gateway, addresses, failures: gateway.groups.configs(addresses, group, failures), _values
    )


def all_on_brokers(cluster: Cluster) -> Callable[[str], OnBrokers]:
    """Asks the masters for all groups; returns what says of one what `create_group` sets. Raises ActionUnavailable."""
    return ask_for_all(
        cluster, lambda gateway, addresses, failures: gateway.groups.tables(addresses, failures), config_values
    )


def default_values() -> Values:
    """Returns the settings of a new group."""
    return _values(SubscriptionGroupConfig(group_name=""))


def _values(config: SubscriptionGroupConfig) -> dict[str, Any]:
    return {name: getattr(config, field) for name, field in {**SETTINGS, **FURTHER_SETTINGS}.items()}
