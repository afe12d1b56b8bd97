"""How many threads call listeners, and when finished calls are reported."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from consumer.engine.clock import now_ms
from consumer.engine.listener_call import ListenerCall, make_calls
from consumer.engine.listening import Listener
from consumer.engine.process_queue import ProcessQueue
from consumer.engine.thread_workers import ThreadWorkers, threads_wanted
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.stored_message import StoredMessage
from tests.support.waiting import eventually


@pytest.mark.parametrize(
    ("active", "taken", "waiting", "is_late", "wanted"),
    [
        pytest.param(1, 0, 31, False, 20, id="a call that hangs is left to its thread: all that wait get one"),
        pytest.param(1, 0, 3, False, 4, id="as many as wait"),
        pytest.param(20, 0, 400, False, 20, id="never more than there may be"),
        pytest.param(1, 1, 31, True, 20, id="also while the machine is busy"),
        pytest.param(2, 10, 90, False, 4, id="listeners that wait for something: twice as many"),
        pytest.param(1, 250, 900, True, 1, id="listeners that only compute: one thread"),
        pytest.param(16, 250, 900, True, 8, id="listeners that have become fast: fewer again"),
    ],
)
def test_threads_are_as_many_as_help(active: int, taken: int, waiting: int, is_late: bool, wanted: int) -> None:
    assert threads_wanted(active=active, taken=taken, waiting=waiting, is_late=is_late, count=20) == wanted


class Calls:
    """Workers of one listener, and what they reported."""

    def __init__(self, count: int, listen: Any) -> None:
        self.reported: list[ListenerCall] = []
        self.hand_overs = 0
        self._listener = Listener("orders", listen)
        self._process_queue = ProcessQueue(MessageQueue("orders", "broker-a", 0), 0)
        self._next_offset = 0
        self.workers = ThreadWorkers(count, self._report, now_ms, name="t")

    def submit(self, count: int) -> None:
        first, self._next_offset = self._next_offset, self._next_offset + count
        messages = self._process_queue.put(
            [
                StoredMessage(topic="orders", queue_id=0, queue_offset=offset, body=b"%d" % offset)
                for offset in range(first, self._next_offset)
            ],
            self._next_offset,
        )
        self.workers.submit(make_calls(messages, {"orders": self._listener}))

    def _report(self, calls: list[ListenerCall]) -> None:
        self.hand_overs += 1
        self.reported += calls


async def test_what_waits_behind_a_call_that_hangs_is_taken_by_other_threads_and_reported() -> None:
    may_end = threading.Event()

    def listen(message: Any) -> None:
        if message.body in (b"10", b"11"):
            may_end.wait(60)

    calls = Calls(3, listen)
    calls.submit(200)
    await eventually(lambda: len(calls.reported) == 198)
    may_end.set()
    await eventually(lambda: len(calls.reported) == 200)
    await calls.workers.close()


async def test_calls_that_are_over_at_once_are_reported_many_at_a_time() -> None:
    threads = set()
    calls = Calls(20, lambda message: threads.add(threading.current_thread()))
    calls.submit(20_000)
    await eventually(lambda: len(calls.reported) == 20_000)
    assert calls.hand_overs < 2_000
    await calls.workers.close()


async def test_every_thread_is_used_while_all_hang() -> None:
    together = threading.Barrier(20)
    calls = Calls(20, lambda message: together.wait(60))
    calls.submit(40)
    await eventually(lambda: len(calls.reported) == 40)
    assert [call.error for call in calls.reported] == [None] * 40
    await calls.workers.close()


@pytest.mark.slow
async def test_threads_that_sleep_are_woken_by_what_comes_later() -> None:
    calls = Calls(4, lambda message: None)
    for round_ in range(1, 200):
        calls.submit(1)
        await eventually(lambda round_=round_: len(calls.reported) == round_)  # type: ignore[misc]
    await calls.workers.close()


async def test_a_hanging_listener_does_not_keep_a_close_waiting_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consumer.engine.thread_workers.JOIN_TIMEOUT_S", 0.05)
    may_end, began = threading.Event(), threading.Event()

    def listen(message: Any) -> None:
        began.set()
        may_end.wait(60)

    calls = Calls(2, listen)
    calls.submit(1)
    await eventually(began.is_set)
    await calls.workers.close()
    assert calls.reported == []
    may_end.set()
    await eventually(lambda: len(calls.reported) == 1)
