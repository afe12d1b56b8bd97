from __future__ import annotations

from datetime import UTC, datetime

import pytest

from consumer.engine.message import Message, to_message
from consumer.engine.process_queue import ProcessQueue
from consumer.engine.subscriptions import original_topic
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.compression import compress
from remoting.wire.errors import BodyError
from remoting.wire.properties import encode_properties
from remoting.wire.stored_message import StoredMessage

QUEUE = MessageQueue("%RETRY%billing", "broker-a", 3)


def received(**fields: object) -> Message:
    stored = StoredMessage(topic=QUEUE.topic, queue_id=3, **fields)
    return to_message(ProcessQueue(QUEUE, 0).put([stored], 1)[0], original_topic(stored))


def test_a_listener_sees_what_the_sender_meant() -> None:
    properties = {"RETRY_TOPIC": "orders", "TAGS": "paid", "KEYS": "a b", "UNIQ_KEY": "AC11", "shop": "north"}
    message = received(
        body=b'{"id":17}',
        queue_offset=9,
        reconsume_times=2,
        born_timestamp_ms=1_700_000_000_123,
        properties_text=encode_properties(properties),
    )
    assert (message.topic, message.tags, message.keys, message.id) == ("orders", "paid", ("a", "b"), "AC11")
    assert (message.json(), message.text, message.properties["shop"]) == ({"id": 17}, '{"id":17}', "north")
    assert (message.queue, message.queue_offset, message.reconsume_times) == (QUEUE, 9, 2)
    assert message.born_at == datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC)


def test_a_compressed_body_is_read() -> None:
    body, sys_flag = compress(b"x" * 10_000)
    assert received(body=body, sys_flag=sys_flag).body == b"x" * 10_000


def test_a_compressed_body_that_is_broken_is_an_error() -> None:
    body, sys_flag = compress(b"x" * 10_000)
    with pytest.raises(BodyError):
        received(body=body[:-4], sys_flag=sys_flag)


def test_a_message_cannot_be_changed() -> None:
    message = received(body=b"x", properties_text=encode_properties({"TAGS": "paid"}))
    with pytest.raises(AttributeError):
        message.body = b"y"  # type: ignore[misc]
    with pytest.raises(TypeError):
        message.properties["TAGS"] = "refunded"  # type: ignore[index]


def test_a_listeners_test_needs_only_topic_and_body() -> None:
    message = Message(topic="orders", body=b"{}")
    assert (message.json(), message.tags, message.keys, message.reconsume_times) == ({}, None, (), 0)


def test_a_body_that_is_no_json_is_the_listeners_error() -> None:
    with pytest.raises(ValueError, match="Expecting value"):
        Message(topic="orders", body=b"oops").json()
