"""The sync faces against a broker on another loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future

import pytest

from remoting.client.blocking import BlockingLitePullConsumer, BlockingPullConsumer
from remoting.client.event_loop_thread import EventLoopThread
from remoting.client.heartbeats import Heartbeats
from remoting.client.lite_pull_consumer import LitePullConfig
from remoting.wire.errors import MessageError
from tests.support.forked import exit_code_of
from tests.support.memory_broker import MemoryBroker
from tests.support.waiting import WITHIN_S

FIRST = LitePullConfig(consume_from="first", wait_ms=200)


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    thread = EventLoopThread("broker of the test")
    broker = MemoryBroker()
    thread.run(broker.__aenter__())
    broker.create_topic("orders", 1)
    thread.call(broker.put, "orders", b"1", b"2")
    yield broker
    thread.run(broker.__aexit__())
    thread.close()


def test_a_script_pulls_and_commits(broker: MemoryBroker) -> None:
    with BlockingPullConsumer(broker.namesrv, "reports") as consumer:
        (queue,) = consumer.queues("orders")
        result = consumer.pull(queue, consumer.committed(queue) or 0, wait_ms=10)
        assert [message.text for message in result.messages] == ["1", "2"]
        consumer.commit(queue, result.next_offset)
        assert consumer.committed(queue) == consumer.max_offset(queue) == 2
        assert consumer.min_offset(queue) == consumer.offset_at(queue, 0) == 0


def test_a_script_polls_what_it_subscribed_to(broker: MemoryBroker) -> None:
    with BlockingLitePullConsumer(broker.namesrv, "reports", FIRST) as consumer:
        consumer.subscribe("orders")
        assert [message.text for message in consumer.poll(10)] == ["1", "2"]
        (queue,) = consumer.assignment
        consumer.commit()
        assert consumer.committed(queue) == 2
        consumer.pause([queue])
        consumer.resume([queue])
        consumer.seek(queue, 1)
        assert [message.text for message in consumer.poll(10)] == ["2"]
        consumer.seek_to_begin(queue)
        consumer.seek_to_end(queue)
        assert consumer.offset_at(queue, 0) == 0
        consumer.unsubscribe("orders")


def test_a_script_assigns_queues(broker: MemoryBroker) -> None:
    with BlockingLitePullConsumer(broker.namesrv, "reports", FIRST) as consumer:
        consumer.assign(consumer.queues("orders"))
        assert len(consumer.poll(10)) == 2


def test_an_error_at_the_start_leaves_no_thread() -> None:
    before = threading.active_count()
    for kind in (BlockingPullConsumer, BlockingLitePullConsumer):
        with pytest.raises(MessageError):
            kind("127.0.0.1:1", "a b")
    assert threading.active_count() == before


@pytest.mark.parametrize("kind", [BlockingPullConsumer, BlockingLitePullConsumer])
def test_closing_that_fails_leaves_no_thread(
    broker: MemoryBroker, kind: type[BlockingPullConsumer | BlockingLitePullConsumer], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(heartbeats: Heartbeats, group: str) -> None:
        raise OSError("unplugged")

    before = threading.active_count()
    consumer = kind(broker.namesrv, "reports")
    monkeypatch.setattr(Heartbeats, "remove_consumer", fail)
    with pytest.raises(OSError, match="unplugged"):
        consumer.close()
    assert threading.active_count() == before


async def test_an_event_loop_is_not_blocked() -> None:
    thread = EventLoopThread("pull consumer reports")
    with pytest.raises(RuntimeError, match="use its async twin"):
        thread.call(int)


def test_a_forked_process_is_told_to_make_its_own() -> None:
    thread = EventLoopThread("pull consumer reports")
    assert thread.call(int) == 0

    def call() -> None:
        with pytest.raises(RuntimeError, match="was made before a fork: make it in the process that uses it"):
            thread.call(int)

    assert exit_code_of(call) == 0
    thread.close()


def test_closing_ends_the_calls_that_others_wait_for() -> None:
    thread = EventLoopThread("own")
    waiting = [thread.submit(asyncio.sleep(3600)) for _ in range(3)]
    thread.call(asyncio.current_task)  # the others have begun
    thread.close()
    for call in waiting:
        with pytest.raises(CancelledError):
            call.result(WITHIN_S)


def test_what_is_submitted_while_another_thread_closes_ends() -> None:
    thread = EventLoopThread("own")
    ends_at_s = time.monotonic() + 0.2
    submitted: list[Future[None]] = []

    def submit() -> None:
        while time.monotonic() < ends_at_s:
            submitted.append(thread.submit(asyncio.sleep(3600)))

    submitting = [threading.Thread(target=submit) for _ in range(2)]
    for one in submitting:
        one.start()
    while any(one.is_alive() for one in submitting):
        thread.close()
    thread.close()
    for call in submitted:
        with pytest.raises(CancelledError):
            call.result(WITHIN_S)


def test_an_interrupted_call_is_cancelled_and_a_closed_thread_starts_anew() -> None:
    thread = EventLoopThread("a loop")
    with pytest.raises(CancelledError):
        thread.run(_cancelled())
    thread.close()
    thread.close()
    assert thread.call(int) == 0
    thread.close()


async def _cancelled() -> None:
    raise asyncio.CancelledError
