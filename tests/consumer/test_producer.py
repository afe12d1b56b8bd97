"""The sync and async faces of the producer, against a broker in memory."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from consumer import producer
from consumer.background_producer import BackgroundProducer
from consumer.producer import encode_body
from remoting.client.errors import ClientError
from remoting.client.outgoing import Message
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.compression import decompress
from remoting.wire.errors import MessageError
from remoting.wire.names import TRACE_TOPIC
from remoting.wire.recall_handle import RecallHandle
from tests.support.broker_thread import BrokerThread
from tests.support.forked import exit_code_of
from tests.support.memory_broker import BROKER_NAME
from tests.support.waiting import WITHIN_S


@pytest.fixture
def broker(settings: Any) -> Iterator[BrokerThread]:
    with BrokerThread() as thread:
        settings.MQADMIN_NAMESRV = thread.broker.namesrv
        yield thread
        producer.close()


def test_send_stores_the_message_with_tags_and_keys(broker: BrokerThread) -> None:
    result = producer.send("orders", {"id": 17}, tags="paid", keys=["a", "b"], properties={"shop": "north"})
    (stored,) = broker.messages("orders")
    assert json.loads(stored.body) == {"id": 17}
    assert (stored.tags, stored.keys, stored.properties["shop"]) == ("paid", ["a", "b"], "north")
    assert result.message_id == stored.unique_key


def test_send_from_many_threads_uses_one_connection(broker: BrokerThread) -> None:
    threads = [threading.Thread(target=producer.send, args=("orders", f"{number}")) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {message.body for message in broker.messages("orders")} == {f"{number}".encode() for number in range(20)}


def test_send_can_be_delayed(broker: BrokerThread) -> None:
    producer.send("orders", b"x", delay_level=3)
    assert broker.messages("orders")[0].properties["DELAY"] == "3"


def test_asend_does_not_block_the_event_loop(broker: BrokerThread) -> None:
    async def send_some() -> None:
        await asyncio.gather(*(producer.asend("orders", b"x") for _ in range(10)))

    asyncio.run(send_some())
    assert len(broker.messages("orders")) == 10


def test_send_is_refused_in_async_code() -> None:
    async def send() -> None:
        producer.send("orders", b"x")

    with pytest.raises(RuntimeError, match="asend"):
        asyncio.run(send())


@pytest.mark.django_db(transaction=True)
def test_send_on_commit_sends_after_the_commit_and_never_after_a_rollback(broker: BrokerThread) -> None:
    with transaction.atomic():
        producer.send_on_commit("orders", b"kept")
        assert broker.messages("orders") == []
    assert [message.body for message in broker.messages("orders")] == [b"kept"]
    with transaction.atomic():
        producer.send_on_commit("orders", b"undone")
        transaction.set_rollback(True)
    assert len(broker.messages("orders")) == 1


def test_a_forked_child_makes_a_producer_of_its_own(broker: BrokerThread) -> None:
    producer.send("orders", b"parent")
    assert exit_code_of(lambda: producer.send("orders", b"child")) == 0
    assert {message.body for message in broker.messages("orders")} == {b"parent", b"child"}


def test_a_producer_that_was_closed_starts_anew(broker: BrokerThread) -> None:
    own = BackgroundProducer("tests")
    own.run(lambda producer: producer.send("orders", b"1"))
    own.close()
    own.run(lambda producer: producer.send("orders", b"2"))
    own.close()
    own.close()
    assert len(broker.messages("orders")) == 2


def test_closing_leaves_no_socket_open_where_nobody_answers(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consumer.background_producer.CLOSE_TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(1) as caller:
        settings.MQADMIN_NAMESRV = f"127.0.0.1:{silent.getsockname()[1]}"
        own = BackgroundProducer("tests")
        sending = caller.submit(own.run, lambda producer: producer.send("orders", b"x", timeout_ms=60_000))
        accepted, _ = silent.accept()
        with accepted:
            accepted.settimeout(WITHIN_S)
            own.close()
            while accepted.recv(65_536):
                pass
        with pytest.raises((ClientError, CancelledError)):
            sending.result(WITHIN_S)


def test_an_unreachable_broker_is_an_error_that_names_it(settings: Any) -> None:
    settings.MQADMIN_NAMESRV = "127.0.0.1:1"
    own = BackgroundProducer("tests")
    with pytest.raises(ClientError, match=r"127\.0\.0\.1:1"):
        own.run(lambda producer: producer.send("orders", b"x"))
    own.close()


@pytest.mark.parametrize(
    ("body", "encoded"),
    [
        (b"x", b"x"),
        ("ü", "ü".encode()),
        ({"a": [1, None]}, b'{"a":[1,null]}'),
        ([Decimal("1.50"), datetime(2026, 1, 1, tzinfo=UTC)], b'["1.50","2026-01-01T00:00:00Z"]'),
    ],
)
def test_a_body_is_bytes_text_or_json(body: Any, encoded: bytes) -> None:
    assert encode_body(body) == encoded


@pytest.mark.parametrize("body", [17, None, object()])
def test_any_other_body_is_refused(body: Any) -> None:
    with pytest.raises(TypeError, match="a body is bytes"):
        encode_body(body)


def test_a_topic_that_rocketmq_would_not_take_is_refused(broker: BrokerThread) -> None:
    with pytest.raises(MessageError, match="topic name 'a b'"):
        producer.send("a b", b"x")


def test_messages_with_one_order_key_go_to_one_queue_as_java_chooses_it(broker: BrokerThread) -> None:
    broker.call(broker.broker.create_topic, "orders", 4)
    results = [producer.send("orders", b"x", order_key=key) for key in ("TagA", "TagA", "order-17", "order-17")]
    ids = [result.queue.queue_id for result in results]
    assert ids[:2] == [2598919 % 4] * 2  # "TagA".hashCode()
    assert ids[2] == ids[3]


def test_a_batch_is_stored_message_by_message(broker: BrokerThread) -> None:
    results = producer.send_batch("orders", [b"1", {"id": 2}, Message(b"3", tags="paid")])
    assert [(message.body, message.tags) for message in broker.messages("orders")] == [
        (b"1", None),
        (b'{"id":2}', None),
        (b"3", "paid"),
    ]
    assert [result.message_id for result in results] == [message.unique_key for message in broker.messages("orders")]


def test_oneway_waits_for_no_answer(broker: BrokerThread) -> None:
    message_id = producer.send_oneway("orders", "x", tags="a")
    producer.send("orders", "y")  # on the same connection
    assert message_id in {message.unique_key for message in broker.messages("orders")}


def test_async_code_has_a_twin_of_each(broker: BrokerThread) -> None:
    async def send_some() -> None:
        await producer.asend("orders", b"1", order_key="k")
        await producer.asend_oneway("orders", b"2")
        await producer.asend_batch("orders", [b"3"])

    asyncio.run(send_some())
    assert sorted(message.body for message in broker.messages("orders")) == [b"1", b"2", b"3"]


def test_a_message_goes_to_the_cluster_that_is_named(broker: BrokerThread, settings: Any) -> None:
    with BrokerThread() as other:
        settings.MQADMIN_CLUSTERS = {"payments": other.broker.namesrv}
        producer.send("orders", b"there", cluster="payments")
        assert len(other.messages("orders")) == 1
        assert broker.messages("orders") == []
        with pytest.raises(ImproperlyConfigured, match="cluster 'paiments' is not in the setting MQADMIN_CLUSTERS"):
            producer.send("orders", b"x", cluster="paiments")
        producer.close()


def test_a_delayed_message_is_recalled_by_its_handle(broker: BrokerThread) -> None:
    asked: list[dict[str, str]] = []

    def recall(request: Command) -> Command:
        asked.append(request.ext_fields)
        return response(request, ResponseCode.SUCCESS, ext_fields={"msgId": "ID"})

    broker.call(broker.broker.create_topic, "orders", 1)
    broker.broker.faults[RequestCode.RECALL_MESSAGE] = recall
    handle = str(RecallHandle("orders", BROKER_NAME, "17", "ID"))
    assert producer.recall("orders", handle) == "ID"
    assert asked == [{"producerGroup": "django", "topic": "orders", "recallHandle": handle}]
    with pytest.raises(MessageError, match="recall handle is invalid"):
        asyncio.run(producer.arecall("orders", "nothing"))


def test_the_settings_say_how_messages_are_sent(broker: BrokerThread, settings: Any) -> None:
    broker.call(broker.broker.create_topic, TRACE_TOPIC, 1)
    settings.CONSUMER_PRODUCER = {
        "group": "shop",
        "trace": True,
        "compression": "lz4",
        "compress_from_bytes": 10,
        "avoids_slow_brokers": True,
    }
    producer.close()
    result = producer.send("orders", b"x" * 100)
    (stored,) = broker.messages("orders")
    assert stored.sys_flag == 0x101
    assert decompress(stored.body, stored.sys_flag) == b"x" * 100
    producer.close()  # sends what was traced
    (trace,) = broker.messages(TRACE_TOPIC)
    assert trace.keys == [result.message_id]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"tracing": True}, "has no 'tracing'; there are: group, timeout_ms"),
        ({"compression": "zip"}, "compression is 'zip'; zlib, lz4 or zstd"),
        ({"timeout_ms": 0}, "timeout_ms is 0; a number of 1 or more is needed"),
        ({"group": "a b"}, "group name 'a b'"),
        ({"trace_topic": ""}, "the topic name is blank"),
    ],
)
def test_settings_that_cannot_be_are_named(given: dict[str, Any], text: str, settings: Any) -> None:
    settings.CONSUMER_PRODUCER = given
    with pytest.raises(ImproperlyConfigured, match=f"^CONSUMER_PRODUCER:? .*{text}"):
        producer.send("orders", b"x")
    producer.close()
