"""Committed offsets over the wire: where a new group begins, and what may not be committed."""

from __future__ import annotations

import pytest

from broker.engine.processors.consumer_offset import QueryConsumerOffset, UpdateConsumerOffset
from broker.engine.topics.topic_configs import QUEUE_NUMS_MAX
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from tests.support.broker_parts import BrokerParts, save_topic
from tests.support.stores import draft

PLENTY = 1 << 30


@pytest.fixture
async def parts(tmp_path):
    parts = BrokerParts(tmp_path / "store")
    save_topic(parts.topics, TopicConfig(topic_name="orders", read_queue_nums=4, write_queue_nums=4))
    parts.groups.find("billing")
    yield parts
    parts.close()


def query(parts: BrokerParts, hot_bytes: int = PLENTY, **fields: str) -> Command:
    values = {"consumerGroup": "billing", "topic": "orders", "queueId": "0"} | fields
    processor = QueryConsumerOffset(parts.offsets, parts.store, hot_bytes)
    return parts.ask(processor, Command(code=RequestCode.QUERY_CONSUMER_OFFSET, ext_fields=values))


def commit(parts: BrokerParts, **fields: str | None) -> Command:
    values = {"consumerGroup": "billing", "topic": "orders", "queueId": "0", "commitOffset": "3"} | fields
    given = {name: value for name, value in values.items() if value is not None}
    processor = UpdateConsumerOffset(parts.topics, parts.groups, parts.offsets)
    return parts.ask(processor, Command(code=RequestCode.UPDATE_CONSUMER_OFFSET, ext_fields=given))


async def test_what_was_committed_is_answered_also_after_a_smaller_commit(parts) -> None:
    for committed in ("3", "1"):
        assert commit(parts, commitOffset=committed).code == ResponseCode.SUCCESS
        assert query(parts).ext_fields == {"offset": committed}


@pytest.mark.parametrize(
    ("messages", "fields", "hot_bytes", "found"),
    [
        (1, {}, PLENTY, True),
        (1, {"setZeroIfNotFound": "true"}, PLENTY, True),
        (1, {"setZeroIfNotFound": "false"}, PLENTY, False),
        (0, {}, PLENTY, False),
        (9, {}, 100, False),
        (1, {"topic": "nowhere"}, PLENTY, False),
        (1, {"queueId": "3"}, PLENTY, False),
    ],
    ids=[
        "a young queue",
        "zero is welcome",
        "zero is unwelcome",
        "an empty queue",
        "the first message is long ago",
        "an unknown topic",
        "another queue",
    ],
)
async def test_a_new_group_is_sent_to_the_start_of_a_young_queue_only(
    parts, messages, fields, hot_bytes, found
) -> None:
    for _ in range(messages):
        parts.store.append(draft())
    answer = query(parts, hot_bytes, **fields)
    if found:
        assert (answer.code, answer.ext_fields) == (ResponseCode.SUCCESS, {"offset": "0"})
    else:
        assert (answer.code, answer.ext_fields) == (ResponseCode.QUERY_NOT_FOUND, {})


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"consumerGroup": "nobody"}, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
        ({"topic": "nowhere"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"queueId": None}, ResponseCode.INVALID_PARAMETER),
        ({"commitOffset": None}, ResponseCode.INVALID_PARAMETER),
        ({"queueId": "-1"}, ResponseCode.INVALID_PARAMETER),
        ({"queueId": str(QUEUE_NUMS_MAX)}, ResponseCode.INVALID_PARAMETER),
        ({"commitOffset": "-1"}, ResponseCode.INVALID_PARAMETER),
        ({"commitOffset": str(1 << 63)}, ResponseCode.SYSTEM_ERROR),
    ],
)
async def test_a_commit_that_makes_no_sense_changes_nothing(parts, fields, code) -> None:
    assert commit(parts, **fields).code == code
    assert list(parts.offsets.items()) == []
    assert not parts.groups.exists("nobody"), "asking makes no group"


async def test_only_so_many_queues_that_are_not_there_can_be_committed(parts, monkeypatch) -> None:
    monkeypatch.setattr("broker.engine.processors.consumer_offset.QUEUES_BEYOND_MAX", 3)
    codes = [commit(parts, queueId=str(queue_id)).code for queue_id in (100, 101, 102, 0, 1, 2, 3)]
    assert set(codes) == {ResponseCode.SUCCESS}, "a topic that got fewer queues has such, and its own are always taken"
    refused = commit(parts, queueId="104")
    assert (refused.code, refused.remark) == (
        ResponseCode.INVALID_PARAMETER,
        "queueId 104 does not exist: orders has 4 queues",
    )
    assert commit(parts, queueId="100", commitOffset="9").code == ResponseCode.SUCCESS, "what is there can be moved"
