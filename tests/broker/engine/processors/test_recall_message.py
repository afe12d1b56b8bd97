"""RECALL_MESSAGE on real parts: the checks in RocketMQ's order, and the delete marker that it leaves."""

from __future__ import annotations

import pytest

from broker.engine.processors.recall_message import RecallMessage
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.names import TIMER_TOPIC
from remoting.wire.recall_handle import RecallHandle
from tests.support.broker_parts import BrokerParts, save_topic
from tests.support.stores import START_MS, read_queue
from tests.support.waiting import eventually


@pytest.fixture
async def parts(tmp_path):
    parts = BrokerParts(tmp_path / "store")
    for name in ("late", "other"):
        save_topic(parts.topics, TopicConfig(topic_name=name))
    yield parts
    parts.close()


def recall(parts, **fields) -> Command:
    time_ms = fields.pop("time_ms", START_MS + 60_001)
    handle = str(RecallHandle(fields.pop("of", "late"), fields.pop("broker", "broker-a"), str(time_ms), "K1"))
    ext_fields = {"topic": "late", "recallHandle": handle, "producerGroup": "sellers"} | fields
    command = Command(
        code=RequestCode.RECALL_MESSAGE,
        ext_fields={name: value for name, value in ext_fields.items() if value is not None},
    )
    return parts.ask(
        RecallMessage(topics=parts.topics, accepting=parts.accepting, config=parts.config, clock=parts.clock), command
    )


async def test_recall_leaves_a_delete_marker_as_apache_writes_it(parts):
    answer = recall(parts)

    assert (answer.code, answer.ext_fields) == (ResponseCode.SUCCESS, {"msgId": "K1", "MSG_REGION": "DefaultRegion"})
    (marker,) = read_queue(parts.store, TIMER_TOPIC)
    assert marker.body == b"0"
    assert marker.properties == {
        "TAGS": "_RECALL_TAG_",
        "TIMER_DEL_UNIQKEY": "K1",
        "UNIQ_KEY": "K1",
        "TIMER_DELIVER_MS": str(START_MS + 60_001),
        "BORN_TIMESTAMP": str(START_MS),
        "PGROUP": "sellers",
        "TIMER_OUT_MS": str(START_MS + 60_000),
        "REAL_TOPIC": "late",
        "REAL_QID": "0",
    }
    assert parts.store.queue_entry(TIMER_TOPIC, 0, 0)[2] == -(START_MS + 60_001)


@pytest.mark.parametrize(
    ("fields", "code", "remark"),
    [
        ({"topic": "nowhere"}, ResponseCode.TOPIC_NOT_EXIST, "recall failed, the topic[nowhere] not exist"),
        ({"recallHandle": "?"}, ResponseCode.ILLEGAL_OPERATION, "recall handle is invalid"),
        ({"recallHandle": None}, ResponseCode.ILLEGAL_OPERATION, "recall handle is invalid"),
        ({"topic": "other"}, ResponseCode.ILLEGAL_OPERATION, "recall failed, topic not match"),
        ({"broker": "broker-b"}, ResponseCode.ILLEGAL_OPERATION, "recall failed, broker service not available"),
        ({"time_ms": START_MS}, ResponseCode.ILLEGAL_OPERATION, "recall failed, timestamp invalid"),
        ({"time_ms": "noon"}, ResponseCode.ILLEGAL_OPERATION, "recall failed, timestamp invalid"),
        ({"time_ms": START_MS + 259_200_000}, ResponseCode.ILLEGAL_OPERATION, "recall failed, timestamp invalid"),
    ],
)
async def test_recall_refuses(parts, fields, code, remark):
    answer = recall(parts, **fields)

    assert (answer.code, answer.remark) == (code, remark)
    assert read_queue(parts.store, TIMER_TOPIC) == []


async def test_recall_is_forbidden_where_it_is_switched_off(parts):
    parts.config.recalls = False

    answer = recall(parts)

    assert (answer.code, answer.remark) == (ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden")


async def test_a_recall_whose_marker_is_flushed_late_is_answered_as_done(parts, monkeypatch):
    monkeypatch.setattr("broker.engine.sending.flush_waiting.FLUSH_TIMEOUT_S", 0.02)
    monkeypatch.setattr(parts.store, "when_flushed", lambda end, callback: None)
    recall(parts)
    await eventually(lambda: parts.wire.sent)

    (answer,) = parts.wire.sent
    assert (answer.code, answer.ext_fields) == (ResponseCode.SUCCESS, {"msgId": "K1", "MSG_REGION": "DefaultRegion"})
    assert len(read_queue(parts.store, TIMER_TOPIC)) == 1
