"""A group that begins where another one is."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.engine.processors.clone_group_offset import CloneGroupOffset
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from tests.support.broker_parts import BrokerParts, save_topic


@pytest.fixture
async def parts(tmp_path: Path):
    parts = BrokerParts(tmp_path / "store")
    for topic in ("orders", "refunds"):
        save_topic(parts.topics, TopicConfig(topic_name=topic))
    for topic in ("orders", "refunds", "gone"):
        parts.offsets.commit("billing", topic, 0, 3)
        parts.offsets.commit("billing", topic, 1, 5)
    yield parts
    parts.close()


def cloned(parts: BrokerParts, **fields: str) -> list[str]:
    """The topics on which the copy has progress; the offsets are looked at."""
    named = {"srcGroup": "billing", "destGroup": "copy", **fields}
    command = Command(code=RequestCode.CLONE_GROUP_OFFSET, ext_fields=named)
    answer = parts.ask(CloneGroupOffset(parts.topics, parts.members, parts.offsets), command)
    assert answer.code == ResponseCode.SUCCESS
    topics = parts.offsets.topics_of("copy")
    for topic in topics:
        assert [parts.offsets.committed("copy", topic, queue_id) for queue_id in (0, 1)] == [3, 5]
    return topics


def test_progress_on_one_topic_is_copied(parts) -> None:
    assert cloned(parts, topic="orders") == ["orders"]


def test_without_a_topic_progress_on_all_that_are_there_is_copied(parts) -> None:
    assert cloned(parts) == ["orders", "refunds"]


def test_a_topic_that_an_online_group_left_is_copied_only_as_of_a_stopped_one(parts) -> None:
    parts.join("billing", SubscriptionData(topic="orders"))
    assert cloned(parts) == ["orders"]
    assert cloned(parts, offline="true") == ["orders", "refunds"]
