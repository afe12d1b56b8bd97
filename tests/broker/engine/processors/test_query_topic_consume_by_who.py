"""Who reads what, from when to when, and which producers are there."""

from __future__ import annotations

import msgspec
import pytest

from broker.engine.processors.get_all_producer_info import GetAllProducerInfo
from broker.engine.processors.query_consume_time_span import QueryConsumeTimeSpan
from broker.engine.processors.query_subscription_by_consumer import QuerySubscriptionByConsumer
from broker.engine.processors.query_topic_consume_by_who import QueryTopicConsumeByWho
from broker.engine.processors.query_topics_by_consumer import QueryTopicsByConsumer
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from tests.support.broker_parts import BrokerParts, save_topic
from tests.support.stores import START_MS, draft


@pytest.fixture
async def parts(tmp_path):
    parts = BrokerParts(tmp_path / "store")
    save_topic(parts.topics, TopicConfig(topic_name="orders", read_queue_nums=2, write_queue_nums=2))
    yield parts
    parts.close()


def ask(parts: BrokerParts, processor, **fields: str):
    answer = parts.ask(processor, Command(code=RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, ext_fields=fields))
    return msgspec.json.decode(answer.body) if answer.code == ResponseCode.SUCCESS else answer.code


async def test_a_topics_groups_are_those_online_and_those_with_progress(parts) -> None:
    groups_of_topic = QueryTopicConsumeByWho(parts.members, parts.offsets)
    topics_of_group = QueryTopicsByConsumer(parts.offsets, "127.0.0.1:10911")
    parts.offsets.commit("mailing", "orders", 0, 1)
    parts.offsets.commit("billing", "orders", 0, 1)
    parts.join("billing", SubscriptionData(topic="orders"), SubscriptionData(topic="others"))
    assert sorted(ask(parts, groups_of_topic, topic="orders")["groupList"]) == ["billing", "mailing"]
    assert ask(parts, groups_of_topic, topic="others")["groupList"] == ["billing"]
    assert ask(parts, topics_of_group, group="billing")["topicList"] == ["orders"]
    assert ask(parts, topics_of_group, group="nobody")["topicList"] == []


async def test_a_groups_subscription_is_told_while_somebody_is_online(parts) -> None:
    subscription = QuerySubscriptionByConsumer(parts.members)
    parts.join("billing", SubscriptionData(topic="orders", sub_string="paid"))
    told = ask(parts, subscription, group="billing", topic="orders")
    assert (told["group"], told["topic"], told["subscriptionData"]["subString"]) == ("billing", "orders", "paid")
    for group, topic in (("billing", "others"), ("nobody", "orders")):
        assert ask(parts, subscription, group=group, topic=topic)["subscriptionData"] is None


async def test_a_groups_place_in_time_is_told_per_queue(parts) -> None:
    for _ in range(3):
        parts.clock.now_ms += 1000
        parts.store.append(draft(queue_id=0))
    parts.offsets.commit("billing", "orders", 0, 1)
    parts.clock.now_ms += 500
    processor = QueryConsumeTimeSpan(
        topics=parts.topics, offsets=parts.offsets, store=parts.store, clock=parts.clock, broker_name="broker-a"
    )
    first, second = ask(parts, processor, topic="orders", group="billing")["consumeTimeSpanSet"]
    assert first == {
        "messageQueue": {"brokerName": "broker-a", "queueId": 0, "topic": "orders"},
        "minTimeStamp": START_MS + 1000,
        "maxTimeStamp": START_MS + 3000,
        "consumeTimeStamp": START_MS + 1000,
        "delayTime": 1500,
    }
    empty = {"minTimeStamp": -1, "maxTimeStamp": -1, "consumeTimeStamp": -1, "delayTime": 0}
    assert {name: second[name] for name in empty} == empty
    assert ask(parts, processor, topic="nowhere", group="billing") == ResponseCode.TOPIC_NOT_EXIST


async def test_all_producers_are_told_by_group(parts) -> None:
    command = Command(code=RequestCode.HEART_BEAT, version=479)
    parts.members.register_producer(command, parts.wire, "me@1", "sellers")
    told = ask(parts, GetAllProducerInfo(parts.members))["data"]
    assert told == {
        "sellers": [
            {
                "clientId": "me@1",
                "language": "PYTHON",
                "lastUpdateTimestamp": START_MS,
                "remoteIP": "/127.0.0.1:40000",
                "version": 479,
            }
        ]
    }
