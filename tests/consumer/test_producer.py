"""The sync and async faces of the producer, against a broker in memory."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction

from consumer import producer
from consumer.producer import BackgroundProducer, encode_body
from remoting.client.errors import ClientError
from remoting.wire.errors import MessageError
from tests.support.memory_broker import MemoryBroker


class BrokerThread:
    """A MemoryBroker on a loop of its own, for blocking tests."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.broker = MemoryBroker()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(5)

    def __enter__(self) -> BrokerThread:
        self._thread.start()
        self.run(self.broker.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self.broker.__aexit__())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)
        self.loop.close()

    def messages(self, topic: str) -> list[Any]:
        return [message for queue, stored in self.broker.queues.items() if queue.topic == topic for message in stored]


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
    pid = os.fork()
    if pid == 0:
        try:
            producer.send("orders", b"child")
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    assert {message.body for message in broker.messages("orders")} == {b"parent", b"child"}


def test_a_producer_that_was_closed_starts_anew(broker: BrokerThread) -> None:
    own = BackgroundProducer("tests")
    own.send("orders", b"1")
    own.close()
    own.send("orders", b"2")
    own.close()
    own.close()
    assert len(broker.messages("orders")) == 2


def test_an_unreachable_broker_is_an_error_that_names_it(settings: Any) -> None:
    settings.MQADMIN_NAMESRV = "127.0.0.1:1"
    own = BackgroundProducer("tests")
    with pytest.raises(ClientError, match=r"127\.0\.0\.1:1"):
        own.send("orders", b"x")
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
