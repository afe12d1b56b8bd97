"""A topic's producers: who is connected, what a broker does not tell, and names that are hostile."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import pytest

from mqadmin.clusters.models import Topic
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.groups import ProducerInfo, ProducerTable
from remoting.wire.codes import RequestCode, ResponseCode
from tests.mqadmin.console.pages import text_of
from tests.support import console_rows as seed
from tests.support.people import make_person
from tests.support.topic_brokers import TopicBrokers

PAGE = "/clusters/prod/topics/orders/producers/"
HOSTILE = "\u202e<b>\x07evil"


@pytest.fixture
def brokers(db, now) -> Iterator[TopicBrokers]:
    with TopicBrokers("broker-a", "broker-b") as brokers:
        prod = seed.make_cluster("prod", now=now, namesrv=brokers.namesrv)
        for name, broker in brokers.brokers.items():
            seed.make_broker(prod, name, now=now, address=broker.server.address)
        seed.make_topic(prod, "orders", now=now, queue_count=0)
        yield brokers


def connects(broker, *client_ids: str) -> None:
    clients = [
        ProducerInfo(client_id=one, language="JAVA", version=493, remote_ip="/10.0.0.7:41") for one in client_ids
    ]
    broker.server.succeed(RequestCode.GET_ALL_PRODUCER_INFO, write_body(ProducerTable(data={"shop": clients})))


def test_it_says_who_is_connected_and_the_topic_leads_there(http, brokers):
    for broker in brokers.brokers.values():
        connects(broker, "10.0.0.7@1")
    text = text_of(http.get(PAGE))
    assert "One producer is connected to the brokers that have orders." in text
    assert "10.0.0.7@1 shop JAVA 5.4.0 10.0.0.7:41" in text
    assert "broker-a broker-b" in text
    assert f'href="{PAGE}"' in http.get("/clusters/prod/topics/orders/").content.decode()


def test_a_broker_that_tells_nothing_is_named_with_what_helps(http, brokers):
    connects(brokers["broker-a"], "10.0.0.7@1")
    brokers["broker-b"].server.refuse(RequestCode.GET_ALL_PRODUCER_INFO, ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
    text = text_of(http.get(PAGE))
    assert re.search(r"PARTIAL .*broker-b : GET_ALL_PRODUCER_INFO", text)
    assert "asked for by its name" in text


def test_nobody_connected_is_said_with_when_that_changes(http, brokers):
    for broker in brokers.brokers.values():
        connects(broker)
    assert "A producer connects with its first message" in text_of(http.get(PAGE))


def test_hostile_names_are_escaped_and_isolated(http, brokers):
    for broker in brokers.brokers.values():
        connects(broker, HOSTILE)
    page = http.get(PAGE).content.decode()
    assert "<b>" not in page
    assert f">{html.escape(HOSTILE)}</bdi>" in page


def test_what_is_not_known_has_no_page(http, brokers):
    Topic.objects.all().delete()
    assert http.get(PAGE).status_code == 404
    assert not brokers["broker-a"].server.asked


def test_who_may_not_see_the_cluster_asks_nobody(client, brokers):
    client.force_login(make_person("dora"))
    assert client.get(PAGE).status_code == 404
    assert not brokers["broker-a"].server.asked
