from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from consumer.engine.clock import now_ms
from consumer.engine.listener_call import ListenerCall, NoListener
from consumer.engine.listening import Listener, NotAwaited
from consumer.engine.process_queue import CachedMessage, ProcessQueue
from consumer.engine.workers import Workers
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.properties import encode_properties
from remoting.wire.stored_message import StoredMessage
from tests.support.waiting import eventually


def cached(topic: str = "orders", count: int = 1, retry_of: str | None = None) -> list[CachedMessage]:
    properties = encode_properties({"RETRY_TOPIC": retry_of}) if retry_of else ""
    return ProcessQueue(MessageQueue(topic, "broker-a", 0), 0).put(
        [
            StoredMessage(topic=topic, queue_id=0, queue_offset=number, body=b"x", properties_text=properties)
            for number in range(count)
        ],
        count,
    )


def make_workers(count: int, call: Callable[..., Any], reports: list[ListenerCall], **options: Any) -> Workers:
    is_async = options.pop("is_async", False)
    listener = Listener("orders", call, is_async=is_async, batch_size=options.pop("batch_size", None))
    return Workers(count, {"orders": listener}, reports.extend, now_ms, name="t", **options)


async def test_reports_arrive_on_the_event_loop_with_their_errors() -> None:
    loop_thread = threading.current_thread()
    arrived: list[tuple[threading.Thread, ListenerCall]] = []

    def listen(message: object) -> None:
        raise SystemExit(3)

    workers = Workers(
        2,
        {"orders": Listener("orders", listen)},
        lambda calls: arrived.extend((threading.current_thread(), call) for call in calls),
        now_ms,
        name="t",
    )
    assert workers.submit(cached(count=5)) == 5
    await eventually(lambda: len(arrived) == 5)
    assert {thread for thread, _ in arrived} == {loop_thread}
    assert all(isinstance(call.error, SystemExit) for _, call in arrived)
    await workers.close()


async def test_at_thread_end_runs_in_each_thread() -> None:
    all_at_once = threading.Barrier(3)
    ended: list[str] = []
    reports: list[ListenerCall] = []
    workers = make_workers(3, lambda message: all_at_once.wait(60), reports, at_thread_end=lambda: ended.append("bye"))
    workers.submit(cached(count=3))
    await eventually(lambda: len(reports) == 3)
    assert [call.error for call in reports] == [None] * 3
    await workers.close()
    assert ended == ["bye"] * 3


async def test_a_plain_function_that_returns_a_coroutine_is_an_error() -> None:
    async def coroutine(message: object) -> None: ...

    reports: list[ListenerCall] = []
    workers = make_workers(1, lambda message: coroutine(message), reports)
    workers.submit(cached())
    await eventually(lambda: reports)
    assert isinstance(reports[0].error, NotAwaited)
    await workers.close()


async def test_a_retry_of_a_topic_that_nobody_listens_to_any_more_is_an_error() -> None:
    async def listen(message: object) -> None: ...

    reports: list[ListenerCall] = []
    workers = make_workers(1, listen, reports, is_async=True)
    workers.submit(cached("%RETRY%billing", retry_of="orders"))
    workers.submit(cached("%RETRY%billing", retry_of="closed"))
    await eventually(lambda: len(reports) == 2)
    assert reports[0].error is None
    assert isinstance(reports[1].error, NoListener)
    await workers.close()


async def test_messages_of_a_lost_queue_are_skipped() -> None:
    called: list[object] = []
    reports: list[ListenerCall] = []
    workers = make_workers(1, called.append, reports)
    messages = cached()
    messages[0].process_queue.drop()
    workers.submit(messages)
    await eventually(lambda: reports)
    assert (called, reports[0].is_skipped) == ([], True)
    await workers.close()


@pytest.mark.parametrize("kind", ["threads", "tasks"])
async def test_what_has_not_begun_can_be_discarded(kind: str) -> None:
    may_end = threading.Event()
    began: list[object] = []
    reports: list[ListenerCall] = []

    def listen(message: object) -> None:
        began.append(message)
        may_end.wait(60)

    async def alisten(message: object) -> None:
        began.append(message)
        await asyncio.to_thread(may_end.wait, 60)

    is_async = kind == "tasks"
    workers = make_workers(1, alisten if is_async else listen, reports, is_async=is_async)
    workers.submit(cached(count=5))
    await eventually(lambda: began)
    assert len(workers.discard_waiting()) == 4
    may_end.set()
    await eventually(lambda: len(reports) == 1)
    await workers.close()
    assert len(began) == 1


async def test_an_async_listener_that_never_waits_leaves_others_their_turn() -> None:
    async def listen(message: object) -> None: ...

    reports: list[ListenerCall] = []
    workers = make_workers(4, listen, reports, is_async=True)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    workers.submit(cached(count=20_000))
    await eventually(lambda: len(reports) == 20_000)
    counting.cancel()
    assert turns > 3
    await workers.close()


async def test_a_cancellation_inside_a_listener_is_its_own_failure() -> None:
    async def listen(message: object) -> None:
        raise asyncio.CancelledError

    reports: list[ListenerCall] = []
    workers = make_workers(1, listen, reports, is_async=True)
    workers.submit(cached(count=2))
    await eventually(lambda: len(reports) == 2)
    assert all(isinstance(report.error, asyncio.CancelledError) for report in reports)
    await workers.close()
