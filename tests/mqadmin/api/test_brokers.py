"""What brokers tell when they are asked: of their run, their settings, who is connected to send."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

import pytest
from django.contrib.auth.models import AbstractUser
from django.test import Client

from mqadmin.clusters.models import Cluster
from mqadmin.metrics.models import BrokerRuntime
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.groups import ProducerInfo, ProducerTable, SubscriptionGroupConfig
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from tests.support import console_rows as seed
from tests.support.group_brokers import GroupBrokers
from tests.support.topic_brokers import TopicBrokers

PROD = "/api/v1/clusters/prod"


@pytest.fixture
def brokers() -> Iterator[TopicBrokers]:
    with TopicBrokers("broker-a", "broker-b") as brokers:
        for broker in brokers.brokers.values():
            broker.server.succeed(
                RequestCode.GET_BROKER_CONFIG, b"fileReservedTime=48\nlistenPort=10911\naPassword=x\n"
            )
            told = ProducerTable(data={"shop": [ProducerInfo(client_id="10.0.0.7@1", language="JAVA", version=493)]})
            broker.server.succeed(RequestCode.GET_ALL_PRODUCER_INFO, write_body(told))
        yield brokers


@pytest.fixture
def prod(db: None, brokers: TopicBrokers, now: datetime) -> Cluster:
    cluster = seed.make_cluster("prod", now=now, namesrv=brokers.namesrv)
    for name, broker in brokers.brokers.items():
        seed.make_broker(cluster, name, now=now, address=broker.server.address)
    seed.make_topic(cluster, "orders", now=now, queue_count=0)
    return cluster


def test_a_broker_says_what_it_told_of_its_run(http: Client, prod: Cluster, now: datetime) -> None:
    broker = prod.brokers.get(name="broker-a")
    BrokerRuntime.objects.create(broker=broker, figures={"runtime": "1 day"}, put_per_s=2.5, seen_at=now)
    (row,) = http.get(f"{PROD}/brokers/broker-a").json()["items"]
    assert (row["put_per_s"]["value"], row["get_per_s"]["value"], row["figures"]) == (2.5, None, {"runtime": "1 day"})
    assert row["version"]
    (row,) = http.get(f"{PROD}/brokers/broker-b").json()["items"]
    assert (row["put_per_s"], row["figures"]) == ({"value": None, "seen_at": None}, {})
    assert http.get(f"{PROD}/brokers/broker-c").status_code == 404


@pytest.mark.usefixtures("prod")
def test_settings_are_asked_for_and_no_password_is_told(http: Client, brokers: TopicBrokers) -> None:
    answer = http.get(f"{PROD}/brokers/broker-a/settings")
    rows = {row["name"]: row for row in answer.json()["items"]}
    assert (rows["fileReservedTime"]["value"], rows["fileReservedTime"]["is_changed"]) == ("48", True)
    assert rows["aPassword"]["value"] is None
    assert "ETag" not in answer
    assert [row["name"] for row in http.get(f"{PROD}/brokers/broker-a/settings?q=PORT").json()["items"]] == [
        "listenPort"
    ]
    brokers.vanish("broker-a")
    away = http.get(f"{PROD}/brokers/broker-a/settings")
    assert (away.status_code, away.json()["type"]) == (503, "/api/v1/problems/unavailable")


@pytest.mark.usefixtures("prod")
def test_producers_are_asked_of_the_brokers_and_who_tells_nothing_is_named(http: Client, brokers: TopicBrokers) -> None:
    brokers["broker-b"].server.refuse(RequestCode.GET_ALL_PRODUCER_INFO, ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
    told = http.get(f"{PROD}/topics/orders/producers").json()
    (row,) = told["items"]
    assert (row["group"], row["client_id"], row["version"], row["brokers"]) == (
        "shop",
        "10.0.0.7@1",
        "5.4.0",
        ["broker-a"],
    )
    assert (told["total_count"], told["broker_count"]) == (1, 2)
    assert [one["broker"] for one in told["failures"]] == ["broker-b"]
    assert http.get(f"{PROD}/topics/nothing/producers").status_code == 404


@pytest.mark.usefixtures("prod", "cluster")
def test_who_may_not_see_the_cluster_asks_nobody(
    brokers: TopicBrokers, ann: AbstractUser, token_of: Callable[..., Client]
) -> None:
    client = token_of(ann, clusters=["local"])
    for path in ("/topics/orders/producers", "/brokers/broker-a/settings", "/brokers/broker-a"):
        assert client.get(PROD + path).status_code == 404
    assert not any(broker.server.asked for broker in brokers.brokers.values())


@pytest.mark.usefixtures("prod")
def test_settings_of_a_topic_are_said_broker_by_broker(http: Client, brokers: TopicBrokers) -> None:
    for name, perm in (("broker-a", 6), ("broker-b", 4)):
        brokers[name].topics["orders"] = TopicConfig(topic_name="orders", perm=perm)
    told = http.get(f"{PROD}/topics/orders/settings").json()
    assert [(one["broker"], one["settings"]["perm"]) for one in told["items"]] == [("broker-a", 6), ("broker-b", 4)]
    assert (told["differing"], told["failures"]) == (["perm"], [])
    brokers.vanish("broker-b")
    told = http.get(f"{PROD}/topics/orders/settings").json()
    assert [one["broker"] for one in told["failures"]] == ["broker-b"]
    brokers.vanish("broker-a")
    assert http.get(f"{PROD}/topics/orders/settings").status_code == 503
    assert http.get(f"{PROD}/topics/nothing/settings").status_code == 404


def test_settings_of_a_group_are_said_broker_by_broker(http: Client, now: datetime) -> None:
    with GroupBrokers("broker-a", "broker-b") as brokers:
        cluster = seed.make_cluster("prod", now=now, namesrv=brokers.namesrv)
        seed.make_group(cluster, "billing", now=now, lag=None)
        brokers["broker-a"].groups["billing"] = SubscriptionGroupConfig(group_name="billing", retry_max_times=3)
        told = http.get(f"{PROD}/groups/billing/settings").json()
    assert [one["settings"].get("retry_times_max") for one in told["items"]] == [3, None]
    assert http.get(f"{PROD}/groups/nothing/settings").status_code == 404
