"""A broker's settings beside their defaults: of ours, of a measured version of Apache's, of any other."""

from __future__ import annotations

import pytest

from mqadmin.brokers.defaults import APACHE_DEFAULTS, BY_PROCESSORS, OWN, defaults_of
from mqadmin.brokers.settings import BrokerSettings, settings_of
from mqadmin.clusters.models import Cluster, ClusterKind
from mqadmin.observing.gateway import GatewayError
from remoting.connection import Connection
from remoting.wire.codes import RequestCode
from remoting.wire.command import Command

V5_4_0, V4_9_7 = 493, 407


def asked(cluster: Cluster, address: str) -> BrokerSettings:
    broker = cluster.brokers.get()
    broker.address = address
    return settings_of(cluster, broker)


def by_name(found: BrokerSettings) -> dict[str, tuple[str, str | None, bool]]:
    return {one.name: (one.value, one.default, one.is_changed) for one in found.settings}


def has_version(brokers, version: int) -> None:
    """As each of its answers tells."""
    answer = brokers["broker-a"].server.answers[RequestCode.GET_BROKER_CONFIG]

    def of_version(connection: Connection, request: Command) -> Command:
        told = answer(connection, request)
        told.version = version
        return told

    brokers["broker-a"].server.answers[RequestCode.GET_BROKER_CONFIG] = of_version


def test_of_ours_the_defaults_are_those_of_this_release(cluster, brokers, settings_of_broker):
    settings_of_broker["fileReservedTime"] = "48"
    found = asked(cluster, brokers["broker-a"].server.address)
    assert by_name(found) == {
        "autoCreateTopicEnable": ("true", "true", False),
        "fileReservedTime": ("48", "72", True),
        "listenPort": ("10911", None, False),
    }
    assert found.changed_count == 1
    assert [one.name for one in found.settings if one.is_own] == ["listenPort"]


def test_of_apaches_they_are_those_that_were_measured_on_its_version(cluster, brokers, settings_of_broker):
    cluster.kind = ClusterKind.APACHE
    settings_of_broker |= {"brokerFastFailureEnable": "false", "heartbeatThreadPoolNums": "7"}
    has_version(brokers, V5_4_0)
    found = asked(cluster, brokers["broker-a"].server.address)
    assert (found.version, found.changed_count) == ("5.4.0", 1)
    assert by_name(found)["brokerFastFailureEnable"] == ("false", "true", True)
    assert by_name(found)["heartbeatThreadPoolNums"] == ("7", None, False)
    assert [one.name for one in found.settings if one.is_by_processors] == ["heartbeatThreadPoolNums"]


def test_of_a_version_that_was_never_measured_none_is_known(cluster, brokers):
    cluster.kind = ClusterKind.APACHE
    has_version(brokers, V5_4_0 - 2)
    found = asked(cluster, brokers["broker-a"].server.address)
    assert (found.version, found.defaults) == ("5.3.9", None)
    assert not any(one.is_changed or one.default for one in found.settings)


def test_a_broker_that_is_gone_says_so(cluster, brokers):
    brokers.vanish("broker-a")
    with pytest.raises(GatewayError, match=brokers["broker-a"].server.address):
        asked(cluster, brokers["broker-a"].server.address)


def test_passwords_are_known_by_their_names(cluster, brokers, settings_of_broker):
    settings_of_broker |= {"initAuthenticationUser": '{"password":"x"}', "innerClientAuthenticationCredentials": "x"}
    found = asked(cluster, brokers["broker-a"].server.address)
    assert [one.name for one in found.settings if one.is_secret] == [
        "initAuthenticationUser",
        "innerClientAuthenticationCredentials",
    ]


def test_every_measured_version_leaves_out_what_no_default_is_of():
    assert {path.stem for path in APACHE_DEFAULTS.glob("*.properties")} == {"5.4.0", "4.9.7"}
    for version in (V5_4_0, V4_9_7):
        defaults = defaults_of(ClusterKind.APACHE, version)
        assert defaults is not None
        assert len(defaults.values) > 150
        assert not set(defaults.values) & (OWN | BY_PROCESSORS)
