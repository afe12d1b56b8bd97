from __future__ import annotations

import pytest

from consumer.engine.listener_call import make_calls
from consumer.engine.listening import Listener
from consumer.engine.outcomes import NotDecoded
from consumer.engine.process_queue import ProcessQueue
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.properties import encode_properties
from remoting.wire.stored_message import StoredMessage


def ignore(message: object) -> None: ...


def test_retries_of_several_topics_go_to_their_own_listeners_in_batches_of_each() -> None:
    origins = ["orders", "orders", "orders", "refunds", "closed", "orders"]
    messages = ProcessQueue(MessageQueue("%RETRY%billing", "broker-a", 0), 0).put(
        [
            StoredMessage(
                topic="%RETRY%billing",
                queue_id=0,
                queue_offset=offset,
                properties_text=encode_properties({"RETRY_TOPIC": origin}),
            )
            for offset, origin in enumerate(origins)
        ],
        len(origins),
    )
    listeners = {"orders": Listener("orders", ignore, batch_size=2), "refunds": Listener("refunds", ignore)}
    calls = make_calls(messages, listeners)
    assert [(call.topic, [cached.stored.queue_offset for cached in call.messages]) for call in calls] == [
        ("orders", [0, 1]),
        ("orders", [2]),
        ("refunds", [3]),
        ("closed", [4]),
        ("orders", [5]),
    ]
    assert [call.listener for call in calls][3:] == [None, listeners["orders"]]


def test_a_batch_listener_gets_a_list_with_the_topic_that_was_sent_to() -> None:
    messages = ProcessQueue(MessageQueue("%RETRY%billing", "broker-a", 0), 0).put(
        [
            StoredMessage(
                topic="%RETRY%billing",
                queue_id=0,
                body=b"x",
                reconsume_times=1,
                properties_text=encode_properties({"RETRY_TOPIC": "orders", "UNIQ_KEY": "K"}),
            )
        ],
        1,
    )
    [call] = make_calls(messages, {"orders": Listener("orders", ignore, batch_size=8)})
    _, argument = call.begin(1234)
    assert isinstance(argument, list)
    assert [(message.topic, message.id, message.reconsume_times) for message in argument] == [("orders", "K", 1)]
    assert messages[0].started_ms == 1234
    assert str(call) == "topic %RETRY%billing message K (times 1)"


def test_one_body_that_cannot_be_read_does_not_spoil_the_others_of_its_batch() -> None:
    def decode(body: bytes) -> int:
        if not body.isdigit():
            raise NotDecoded("no number")
        return int(body)

    messages = ProcessQueue(MessageQueue("orders", "broker-a", 0), 0).put(
        [
            StoredMessage(topic="orders", queue_id=0, queue_offset=offset, body=body)
            for offset, body in enumerate([b"0", b"x", b"2", b"y"])
        ],
        4,
    )
    listeners = {"orders": Listener("orders", ignore, batch_size=8, decode=decode)}
    [call] = make_calls(messages[:3], listeners)
    _, argument = call.begin(1)
    assert isinstance(argument, list)
    assert [message.data for message in argument] == [0, 2]
    assert call.messages == [messages[0], messages[2]]
    assert [(cached, str(error)) for cached, error in call.spoiled] == [(messages[1], "no number")]
    [alone] = make_calls(messages[3:], listeners)
    with pytest.raises(NotDecoded):
        alone.begin(1)
    assert (alone.messages, alone.spoiled) == ([messages[3]], [])
