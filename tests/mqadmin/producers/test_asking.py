"""Producers asked of a topic's brokers: merged over brokers, remembered, and what one broker does not tell."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster, ClusterState, Topic
from mqadmin.producers.asking import PRODUCERS_MAX, SEEN_KEPT_FOR, ask_round, producers_of
from mqadmin.producers.models import SeenProducer
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.groups import ClientConnection, ProducerConnection, ProducerInfo, ProducerTable
from remoting.wire.codes import RequestCode, ResponseCode
from tests.support import console_rows as seed
from tests.support.topic_brokers import TopicBrokers

ALL, OF_GROUP = RequestCode.GET_ALL_PRODUCER_INFO, RequestCode.GET_PRODUCER_CONNECTION_LIST
NOW = timezone.now()


@pytest.fixture
def brokers() -> Iterator[TopicBrokers]:
    with TopicBrokers("broker-a", "broker-b") as brokers:
        yield brokers


@pytest.fixture
def prod(db, brokers) -> Cluster:
    prod = seed.make_cluster("prod", now=NOW, namesrv=brokers.namesrv)
    for name, broker in brokers.brokers.items():
        seed.make_broker(prod, name, now=NOW, address=broker.server.address)
    return prod


@pytest.fixture
def orders(prod) -> Topic:
    return seed.make_topic(prod, "orders", now=NOW, queue_count=0)


def connects(broker, *clients: ProducerInfo, group: str = "shop") -> None:
    broker.server.succeed(ALL, write_body(ProducerTable(data={group: list(clients)})))


def producer(client_id: str = "10.0.0.7@1", **fields) -> ProducerInfo:
    return ProducerInfo(
        client_id=client_id, **{"language": "JAVA", "version": 493, "remote_ip": "/10.0.0.7:4"} | fields
    )


def test_a_producer_of_two_brokers_is_one_line_with_its_latest_heartbeat(brokers, prod, orders):
    heartbeat_ms = int(NOW.timestamp() * 1000)
    connects(brokers["broker-a"], producer(last_update_timestamp=heartbeat_ms - 30_000))
    connects(brokers["broker-b"], producer(last_update_timestamp=heartbeat_ms))
    answer = producers_of(prod, orders, "", NOW)
    (one,) = answer.producers
    assert (one.group, one.client_id, one.address) == ("shop", "10.0.0.7@1", "10.0.0.7:4")
    assert (one.language, one.version_name, one.brokers) == ("JAVA", "5.4.0", ("broker-a", "broker-b"))
    assert one.heartbeat_at is not None
    assert int(one.heartbeat_at.timestamp() * 1000) == heartbeat_ms
    assert (answer.total_count, answer.broker_count, answer.failures) == (1, 2, {})


def test_only_the_brokers_that_have_the_topic_are_asked(brokers, prod):
    connects(brokers["broker-a"], producer())
    connects(brokers["broker-b"], producer("10.0.0.8@1"))
    refunds = seed.make_topic(prod, "refunds", now=NOW, queue_count=2)
    assert [one.client_id for one in producers_of(prod, refunds, "", NOW).producers] == ["10.0.0.7@1"]
    assert not brokers["broker-b"].server.asked_codes()


def test_a_broker_that_does_not_know_the_request_is_named_with_the_reason_beside_what_others_tell(
    brokers, prod, orders
):
    connects(brokers["broker-a"], producer())
    brokers["broker-b"].server.refuse(ALL, ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
    answer = producers_of(prod, orders, "", NOW)
    assert len(answer.producers) == 1
    assert "GET_ALL_PRODUCER_INFO" in answer.failures["broker-b"]


def test_a_broker_that_is_gone_is_named(brokers, prod, orders):
    connects(brokers["broker-b"], producer())
    brokers.vanish("broker-a")
    answer = producers_of(prod, orders, "", NOW)
    assert list(answer.failures) == ["broker-a"]
    assert len(answer.producers) == 1


def test_a_group_is_asked_for_by_its_name_without_heartbeats(brokers, prod, orders):
    told = ProducerConnection(connection_set=[ClientConnection(client_id="10.0.0.7@1", client_addr="10.0.0.7:4")])
    brokers["broker-a"].server.succeed(OF_GROUP, write_body(told))
    brokers["broker-b"].server.refuse(OF_GROUP, ResponseCode.SYSTEM_ERROR, "the producer group[shop] not exist")
    answer = producers_of(prod, orders, "shop", NOW)
    assert [(one.group, one.address, one.heartbeat_at) for one in answer.producers] == [("shop", "10.0.0.7:4", None)]
    assert not answer.failures
    (request,) = brokers["broker-a"].server.asked
    assert request.ext_fields["producerGroup"] == "shop"


def test_who_was_seen_before_keeps_its_moment_until_nobody_saw_it_for_a_week(brokers, prod, orders):
    connects(brokers["broker-a"], producer())
    producers_of(prod, orders, "", NOW)
    connects(brokers["broker-a"], producer(), producer("10.0.0.8@1"))
    later = NOW + timedelta(hours=1)
    found = {one.client_id: one.first_seen_at for one in producers_of(prod, orders, "", later).producers}
    assert found == {"10.0.0.7@1": NOW, "10.0.0.8@1": later}
    connects(brokers["broker-a"])
    producers_of(prod, orders, "", later + SEEN_KEPT_FOR + timedelta(seconds=1))
    assert not SeenProducer.objects.exists()


def test_names_and_times_that_make_no_sense_cost_no_more_than_themselves(brokers, prod, orders):
    connects(brokers["broker-a"], producer("x" * 300, last_update_timestamp=2**62), producer("a\0b"), producer())
    found = {one.client_id: one for one in producers_of(prod, orders, "", NOW).producers}
    assert len(found) == 3
    assert found["x" * 300].first_seen_at is None
    assert found["x" * 300].heartbeat_at is None
    assert found["10.0.0.7@1"].first_seen_at == NOW


def test_of_very_many_the_first_are_shown_and_all_are_counted(brokers, prod, orders):
    connects(brokers["broker-a"], *(producer(f"10.0.0.7@{number:04}") for number in range(PRODUCERS_MAX + 3)))
    answer = producers_of(prod, orders, "", NOW)
    assert len(answer.producers) == PRODUCERS_MAX
    assert answer.total_count == PRODUCERS_MAX + 3


def test_a_round_asks_each_master_once_and_remembers_who_is_there(brokers, prod):
    connects(brokers["broker-a"], producer())
    connects(brokers["broker-b"], producer(), producer("10.0.0.8@1"))
    assert ask_round(prod, NOW) == 2
    assert {row.client_id: row.seen_at for row in SeenProducer.objects.all()} == {"10.0.0.7@1": NOW, "10.0.0.8@1": NOW}
    assert [one.server.asked_codes() for one in brokers.brokers.values()] == [[ALL], [ALL]]
    assert sum(prod.request_costs.values_list("request_count", flat=True)) == 2


def test_a_broker_without_a_list_is_asked_for_the_groups_that_were_seen_before(brokers, prod):
    connects(brokers["broker-a"], producer())
    brokers["broker-b"].server.refuse(ALL, ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
    brokers["broker-b"].server.succeed(
        OF_GROUP,
        write_body(ProducerConnection(connection_set=[ClientConnection(client_id="10.0.0.9@1", client_addr="h:4")])),
    )
    assert ask_round(prod, NOW) == 1, "of whom it has nobody knows yet"
    assert ask_round(prod, NOW + timedelta(minutes=1)) == 2
    assert brokers["broker-b"].server.of_code(OF_GROUP)[0].ext_fields["producerGroup"] == "shop"


def test_a_cluster_that_does_not_answer_is_not_asked(brokers, prod):
    prod.state = ClusterState.UNREACHABLE
    assert ask_round(prod, NOW) == 0
    assert not brokers["broker-a"].server.asked


def test_a_cluster_without_brokers_asks_nobody(prod, orders):
    prod.brokers.all().delete()
    assert producers_of(prod, orders, "", NOW).broker_count == 0
