"""Queues whose topic is gone from the table of topics."""

from __future__ import annotations

from pathlib import Path

from broker.engine.processors.clean_unused_topic import CleanUnusedTopic
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.names import SCHEDULE_TOPIC
from tests.support.broker_parts import BrokerParts, save_topic
from tests.support.stores import draft


async def test_queues_of_topics_that_do_not_exist_are_deleted(tmp_path: Path) -> None:
    parts = BrokerParts(tmp_path / "store")
    save_topic(parts.topics, TopicConfig(topic_name="orders"))
    for topic in ("orders", "gone", SCHEDULE_TOPIC):
        parts.store.append(draft(topic=topic))
    processor = CleanUnusedTopic(parts.topics, parts.store)
    answer = parts.ask(processor, Command(code=RequestCode.CLEAN_UNUSED_TOPIC))
    assert answer is not None
    assert answer.code == ResponseCode.SUCCESS
    assert [parts.store.max_offset(topic, 0) for topic in ("orders", "gone", SCHEDULE_TOPIC)] == [1, 0, 1]
    parts.close()
