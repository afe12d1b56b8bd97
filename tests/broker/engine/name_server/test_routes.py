"""The name server's answers, in a form that every client reads."""

from __future__ import annotations

import msgspec
import pytest

from broker.engine.name_server.kv_config import KVConfig
from broker.engine.name_server.routes import Routes
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from tests.support.broker_parts import BrokerParts, save_topic


@pytest.fixture
async def parts(tmp_path):
    parts = BrokerParts(tmp_path / "store", advertise_host="10.1.2.3")
    yield parts
    parts.close()


def ask(parts: BrokerParts, verb: str, **fields: str) -> Command:
    routes = Routes(parts.topics, KVConfig(parts.config.config_dir, parts.complaints), parts.config)
    return parts.ask(getattr(routes, verb), Command(code=RequestCode.GET_ROUTEINFO_BY_TOPIC, ext_fields=fields))


async def test_a_route_is_compact_json_with_quoted_keys(parts) -> None:
    """Go splits the text at commas and colons: a blank or a bare key would break it."""
    save_topic(parts.topics, TopicConfig(topic_name="orders", read_queue_nums=4, write_queue_nums=2, perm=6))
    body = ask(parts, "of_topic", topic="orders").body
    assert b'"brokerAddrs":{"0":"10.1.2.3:10911"}' in body
    assert b" " not in body
    route = msgspec.json.decode(body)
    (queues,) = route["queueDatas"]
    assert (queues["readQueueNums"], queues["writeQueueNums"], queues["perm"]) == (4, 2, 6)
    assert route["brokerDatas"][0]["brokerName"] == queues["brokerName"] == "broker-a"


async def test_a_new_topic_is_routed_at_once_and_a_deleted_one_no_more(parts) -> None:
    missing = ask(parts, "of_topic", topic="orders")
    assert (missing.code, "orders" in missing.remark) == (ResponseCode.TOPIC_NOT_EXIST, True)
    save_topic(parts.topics, TopicConfig(topic_name="orders"))
    assert ask(parts, "of_topic", topic="orders").code == ResponseCode.SUCCESS
    parts.topics.delete("orders")
    assert ask(parts, "of_topic", topic="orders").code == ResponseCode.TOPIC_NOT_EXIST


async def test_producers_find_the_template_of_new_topics(parts) -> None:
    (queues,) = msgspec.json.decode(ask(parts, "of_topic", topic="TBW102").body)["queueDatas"]
    assert (queues["perm"], queues["writeQueueNums"]) == (7, 8)


async def test_a_route_says_no_more_than_the_broker_permits(parts) -> None:
    save_topic(parts.topics, TopicConfig(topic_name="orders", perm=6))
    for broker_perm, expected in ((6, 6), (4, 4), (2, 2), (0, 0)):
        parts.config.perm = broker_perm
        (queues,) = msgspec.json.decode(ask(parts, "of_topic", topic="orders").body)["queueDatas"]
        assert queues["perm"] == expected


async def test_the_cluster_is_this_broker(parts) -> None:
    info = msgspec.json.decode(ask(parts, "of_cluster").body)
    assert info["clusterAddrTable"] == {"local": ["broker-a"]}
    assert info["brokerAddrTable"]["broker-a"]["brokerAddrs"] == {"0": "10.1.2.3:10911"}


async def test_topics_are_listed_for_the_cluster_that_has_them(parts) -> None:
    save_topic(parts.topics, TopicConfig(topic_name="orders"))
    everything = msgspec.json.decode(ask(parts, "all_topics").body)["topicList"]
    assert {"orders", "TBW102", "local", "broker-a"} <= set(everything)
    assert msgspec.json.decode(ask(parts, "topics_of_cluster", cluster="local").body)["topicList"] == everything
    elsewhere = ask(parts, "topics_of_cluster", cluster="elsewhere")
    assert (elsewhere.code, msgspec.json.decode(elsewhere.body)["topicList"]) == (ResponseCode.SUCCESS, [])


async def test_system_topics_name_a_broker_to_ask_for_the_others(parts) -> None:
    answer = msgspec.json.decode(ask(parts, "system_topics").body)
    assert answer == {"brokerAddr": "10.1.2.3:10911", "topicList": ["local", "broker-a"]}


async def test_a_wiped_permission_to_write_keeps_producers_away_until_it_is_added(parts) -> None:
    routes = Routes(parts.topics, KVConfig(parts.config.config_dir, parts.complaints), parts.config)

    def turn(verb: str, broker_name: str) -> dict[str, str]:
        return parts.ask(getattr(routes, verb), Command(code=205, ext_fields={"brokerName": broker_name})).ext_fields

    def perm() -> int:
        answer = parts.ask(routes.of_topic, Command(code=105, ext_fields={"topic": "SELF_TEST_TOPIC"}))
        return msgspec.json.decode(answer.body)["queueDatas"][0]["perm"]

    topics = str(len(parts.topics.table.topic_config_table))
    assert turn("wipe_write_permission", "another") == {"wipeTopicCount": "0"}
    assert perm() == 6
    assert turn("wipe_write_permission", "broker-a") == {"wipeTopicCount": topics}
    assert perm() == 4
    assert turn("add_write_permission", "broker-a") == {"addTopicCount": topics}
    assert perm() == 6


async def test_topics_of_units_are_listed(parts) -> None:
    for flags in range(4):
        save_topic(parts.topics, TopicConfig(topic_name=f"flags-{flags}", topic_sys_flag=flags))
    assert {
        verb: msgspec.json.decode(ask(parts, verb).body)["topicList"]
        for verb in ("unit_topics", "unit_subscribed_topics", "unit_subscribed_topics_elsewhere")
    } == {
        "unit_topics": ["flags-1", "flags-3"],
        "unit_subscribed_topics": ["flags-2", "flags-3"],
        "unit_subscribed_topics_elsewhere": ["flags-2"],
    }
