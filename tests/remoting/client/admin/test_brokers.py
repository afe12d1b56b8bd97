from __future__ import annotations

import pytest

from remoting.client.admin import Admin
from remoting.client.errors import BrokerRefused
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.java_properties import read_properties
from tests.support.answering_server import AnsweringServer


async def test_what_a_broker_tells_of_its_run_is_read_whatever_its_values_are(
    server: AnsweringServer, admin: Admin
) -> None:
    body = b'{"table":{"putTps":"12.5  ","bootTimestamp":1700000000000,"none":null,"brokerActive":true}}'
    server.succeed(RequestCode.GET_BROKER_RUNTIME_INFO, body)
    info = await admin.brokers.runtime_info(server.address)
    assert info == {"putTps": "12.5  ", "bootTimestamp": "1700000000000", "brokerActive": "true"}


async def test_settings_are_read_as_apache_writes_them_without_escapes(server: AnsweringServer, admin: Admin) -> None:
    body = b"deleteWhen=04\nstorePath=C:\\new\\store\nfilter=a=b:c\n"
    version = '{"counter":3,"stateVersion":0,"timestamp":1700000000000}'
    server.succeed(RequestCode.GET_BROKER_CONFIG, body, version=version)
    config = await admin.brokers.config(server.address)
    assert config.settings == {"deleteWhen": "04", "storePath": "C:\\new\\store", "filter": "a=b:c"}
    assert config.version is not None
    assert config.version.counter == 3
    server.succeed(RequestCode.GET_BROKER_CONFIG, body)
    assert (await admin.brokers.config(server.address)).version is None


async def test_a_value_cannot_smuggle_in_another_setting(server: AnsweringServer, admin: Admin) -> None:
    changes = {"deleteWhen": "04\nbrokerName=stolen", "名": " é \\ \U0001f600", "fileReservedTime": "48"}
    await admin.brokers.update_config(server.address, changes)
    # As Java reads it: bytes as ISO 8859-1, then escapes.
    assert read_properties(bytes(server.asked[0].body).decode("latin-1")) == changes


async def test_counts_are_read_and_none_before_the_first(server: AnsweringServer, admin: Admin) -> None:
    body = b'{"statsDay":{"avgpt":1.0,"sum":9,"tps":0.5},"statsHour":{"sum":4},"statsMinute":{}}'
    server.succeed(RequestCode.VIEW_BROKER_STATS_DATA, body)
    stats = await admin.brokers.stats(server.address, "TOPIC_PUT_NUMS", "orders")
    assert stats is not None
    assert (stats.stats_day.sum, stats.stats_hour.sum, stats.stats_minute.tps) == (9, 4, 0.0)
    assert server.asked[0].ext_fields == {"statsName": "TOPIC_PUT_NUMS", "statsKey": "orders"}
    server.refuse(RequestCode.VIEW_BROKER_STATS_DATA, 1, "The stats <TOPIC_PUT_NUMS> <orders> not exist")
    assert await admin.brokers.stats(server.address, "TOPIC_PUT_NUMS", "orders") is None
    server.refuse(RequestCode.VIEW_BROKER_STATS_DATA, 1, "java.lang.NullPointerException")
    with pytest.raises(BrokerRefused, match="TOPIC_PUT_NUMS of 'orders'"):
        await admin.brokers.stats(server.address, "TOPIC_PUT_NUMS", "orders")


async def test_the_progress_of_all_groups_of_a_broker_is_read(server: AnsweringServer, admin: Admin) -> None:
    body = (
        b'{"brokerAddr":"h:1","consumeStatsList":[{"g1":[{"consumeTps":1.5,"offsetTable":{{"brokerName":"a",'
        b'"queueId":0,"topic":"T"}:{"brokerOffset":10,"consumerOffset":4,"lastTimestamp":7}}}]},{"g2":[]}],'
        b'"totalDiff":6,"totalInflightDiff":2}'
    )
    server.succeed(RequestCode.GET_BROKER_CONSUME_STATS, body)
    stats = await admin.brokers.consume_stats(server.address)
    assert (stats.total_diff, stats.total_inflight_diff, list(stats.groups)) == (6, 2, ["g1", "g2"])
    (of_topic,) = stats.groups["g1"]
    assert of_topic.queues[MessageQueue("T", "a", 0)].broker_offset == 10
    assert server.asked[0].ext_fields == {"isOrder": "false"}


async def test_clean_ups_are_requests_without_fields(server: AnsweringServer, admin: Admin) -> None:
    await admin.brokers.clean_expired_consume_queues(server.address)
    await admin.brokers.clean_unused_topics(server.address)
    await admin.brokers.delete_expired_commit_log(server.address)
    assert [(request.code, request.ext_fields) for request in server.asked] == [(306, {}), (316, {}), (329, {})]


async def test_a_brokers_own_topics_are_read(server: AnsweringServer, admin: Admin) -> None:
    server.succeed(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, b'{"topicList":["TBW102"]}')
    assert await admin.brokers.system_topics(server.address) == ["TBW102"]
    server.refuse(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, ResponseCode.NO_PERMISSION)
    with pytest.raises(BrokerRefused):
        await admin.brokers.system_topics(server.address)
