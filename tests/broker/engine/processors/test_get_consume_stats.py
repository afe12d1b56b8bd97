"""A group's progress as administrators see it."""

from __future__ import annotations

import pytest

from broker.engine.processors.get_consume_stats import GetConsumeStats
from remoting.wire.bodies.consume_stats import ConsumeStats, read_consume_stats
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode
from remoting.wire.command import Command
from tests.support.broker_parts import BrokerParts, save_topic
from tests.support.stores import draft


@pytest.fixture
async def parts(tmp_path):
    parts = BrokerParts(tmp_path / "store")
    for topic in ("orders", "refunds"):
        save_topic(parts.topics, TopicConfig(topic_name=topic, read_queue_nums=2, write_queue_nums=2))
    for _ in range(5):
        parts.store.append(draft())
    parts.groups.find("billing")
    yield parts
    parts.close()


def ask(parts: BrokerParts, **fields: str) -> ConsumeStats:
    processor = GetConsumeStats(
        topics=parts.topics,
        members=parts.members,
        offsets=parts.offsets,
        store=parts.store,
        got=parts.stats.got,
        broker_name=parts.config.name,
    )
    request = Command(code=RequestCode.GET_CONSUME_STATS, ext_fields={"consumerGroup": "billing"} | fields)
    return read_consume_stats(parts.ask(processor, request).body)


def queue(topic: str, queue_id: int) -> MessageQueue:
    return MessageQueue(topic, "broker-a", queue_id)


async def test_each_queue_tells_what_was_committed_given_out_and_stored(parts) -> None:
    parts.offsets.commit("billing", "orders", 0, 2)
    parts.offsets.pulled("billing", "orders", 0, 4)
    stats = ask(parts)
    assert set(stats.queues) == {queue("orders", 0), queue("orders", 1)}
    told = stats.queues[queue("orders", 0)]
    assert (told.consumer_offset, told.pull_offset, told.broker_offset) == (2, 4, 5)
    assert told.last_timestamp == parts.store.store_timestamp_at("orders", 0, 1)
    untouched = stats.queues[queue("orders", 1)]
    assert (untouched.consumer_offset, untouched.broker_offset, untouched.last_timestamp) == (0, 0, 0)


async def test_a_topic_that_an_online_group_left_does_not_count_unless_it_is_listed(parts) -> None:
    for topic in ("orders", "refunds"):
        parts.offsets.commit("billing", topic, 0, 1)
    assert {one.topic for one in ask(parts).queues} == {"orders", "refunds"}
    parts.join("billing", SubscriptionData(topic="orders", sub_version=1))
    assert {one.topic for one in ask(parts).queues} == {"orders"}
    assert {one.topic for one in ask(parts, topic="refunds").queues} == set()
    assert {one.topic for one in ask(parts, topicList="orders;refunds;").queues} == {"orders", "refunds"}


async def test_a_topic_that_is_gone_is_left_out(parts) -> None:
    parts.offsets.commit("billing", "orders", 0, 1)
    parts.topics.delete("orders")
    assert ask(parts).queues == {}
    assert ask(parts, topic="orders").queues == {}


async def test_an_unknown_group_has_no_progress(parts) -> None:
    assert ask(parts, consumerGroup="nobody").queues == {}


async def test_a_topic_that_is_listed_many_times_is_looked_at_once(parts, monkeypatch) -> None:
    looked_at: list[tuple[str, int]] = []
    max_offset = parts.store.max_offset

    def noting(topic: str, queue_id: int) -> int:
        looked_at.append((topic, queue_id))
        return max_offset(topic, queue_id)

    monkeypatch.setattr(parts.store, "max_offset", noting)
    ask(parts, topicList="orders;" * 1000)
    assert sorted(looked_at) == [("orders", 0), ("orders", 1)]
