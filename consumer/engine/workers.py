"""Calls listeners: sync ones in threads, async ones in tasks on the event loop.

Both take cached messages in order and report each call's error and duration; reports always arrive on the event loop.
The messages that wait in an inbox are bounded by the flow control of their queues. A worker changes no process queue:
it only reads whether it was dropped.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from consumer.engine.clock import Clock
from consumer.engine.listening import Listener, call_async, call_sync
from consumer.engine.message import to_message
from consumer.engine.process_queue import CachedMessage
from consumer.engine.subscriptions import original_topic

# Async listeners that never await may keep the event loop for so long before other tasks run.
LOOP_SLICE_S = 0.005
# How long a close waits for idle threads.
JOIN_TIMEOUT_S = 2.0


class NoListener(LookupError):
    """The group has no listener for the topic: a retry of one whose listener was removed."""


@dataclass(slots=True)
class ListenerReport:
    """`error` None: the listener returned. `is_skipped`: the queue was lost before the listener was called."""

    cached: CachedMessage
    error: BaseException | None = None
    duration_ms: float = 0.0
    is_skipped: bool = False


Reported = Callable[[ListenerReport], None]


class Workers(Protocol):
    def submit(self, cached: CachedMessage) -> None: ...

    def discard_waiting(self) -> int:
        """Removes the messages that no listener has begun; returns their number."""
        ...

    async def close(self) -> None: ...


def listener_for(listeners: Mapping[str, Listener], cached: CachedMessage) -> Listener:
    """Raises NoListener."""
    topic = original_topic(cached.stored)
    listener = listeners.get(topic)
    if listener is None:
        raise NoListener(f"no listener for topic {topic!r}")
    return listener


class ThreadWorkers(Workers):
    """Up to `count` threads, made when first needed. `at_thread_end` runs in each before it ends.

    The threads are daemons: a listener that never returns must not keep the process alive after the consumer's stop.
    """

    def __init__(
        self,
        count: int,
        listeners: Mapping[str, Listener],
        reported: Reported,
        clock: Clock,
        *,
        name: str,
        at_thread_end: Callable[[], None] | None = None,
    ) -> None:
        self._count = count
        self._listeners = listeners
        self._reported = reported
        self._clock = clock
        self._name = name
        self._at_thread_end = at_thread_end
        self._loop = asyncio.get_running_loop()
        self._inbox: queue.SimpleQueue[CachedMessage | None] = queue.SimpleQueue()
        self._reports: deque[ListenerReport] = deque()
        self._is_delivering = False
        self._threads: list[threading.Thread] = []

    def submit(self, cached: CachedMessage) -> None:
        if len(self._threads) < self._count:
            self._start_thread()
        self._inbox.put(cached)

    def discard_waiting(self) -> int:
        discarded = 0
        while True:
            try:
                self._inbox.get_nowait()
            except queue.Empty:
                return discarded
            discarded += 1

    async def close(self) -> None:
        """Ends idle threads and waits for them; one that hangs in its listener is left behind."""
        for _ in self._threads:
            self._inbox.put(None)
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        deadline_s = time.monotonic() + JOIN_TIMEOUT_S
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads) + 1}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        try:
            while (cached := self._inbox.get()) is not None:
                self._report(self._consume(cached))
        finally:
            if self._at_thread_end is not None:
                self._at_thread_end()

    def _consume(self, cached: CachedMessage) -> ListenerReport:
        if cached.process_queue.is_dropped:
            return ListenerReport(cached, is_skipped=True)
        began_s = time.perf_counter()
        cached.started_ms = self._clock()
        error: BaseException | None = None
        try:
            call_sync(listener_for(self._listeners, cached), to_message(cached))
        except BaseException as raised:  # SystemExit in a listener ends neither thread nor process
            error = raised
        return ListenerReport(cached, error, (time.perf_counter() - began_s) * 1000)

    def _report(self, report: ListenerReport) -> None:
        """Wakes the event loop once for all reports that arrive before it runs."""
        self._reports.append(report)
        if not self._is_delivering:
            self._is_delivering = True
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:
                return  # the loop was closed while a listener hung

    def _deliver(self) -> None:
        # Cleared before the reports are read: one that arrives after the last read wakes the loop again.
        self._is_delivering = False
        while self._reports:
            self._reported(self._reports.popleft())


class LoopWorkers(Workers):
    """Up to `count` listeners at once on the event loop."""

    def __init__(
        self, count: int, listeners: Mapping[str, Listener], reported: Reported, clock: Clock, *, name: str
    ) -> None:
        self._count = count
        self._listeners = listeners
        self._reported = reported
        self._clock = clock
        self._name = name
        self._inbox: asyncio.Queue[CachedMessage] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []

    def submit(self, cached: CachedMessage) -> None:
        if len(self._tasks) < self._count:
            self._tasks.append(asyncio.create_task(self._work(), name=f"{self._name}-{len(self._tasks) + 1}"))
        self._inbox.put_nowait(cached)

    def discard_waiting(self) -> int:
        discarded = self._inbox.qsize()
        while not self._inbox.empty():
            self._inbox.get_nowait()
        return discarded

    async def close(self) -> None:
        """Cancels listeners that still run."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work(self) -> None:
        slice_end_s = 0.0
        while True:
            cached = await self._inbox.get()
            began_s = time.perf_counter()
            if began_s > slice_end_s:
                await asyncio.sleep(0)
                began_s = time.perf_counter()
                slice_end_s = began_s + LOOP_SLICE_S
            self._reported(await self._consume(cached, began_s))

    async def _consume(self, cached: CachedMessage, began_s: float) -> ListenerReport:
        if cached.process_queue.is_dropped:
            return ListenerReport(cached, is_skipped=True)
        cached.started_ms = self._clock()
        error: BaseException | None = None
        try:
            await call_async(listener_for(self._listeners, cached), to_message(cached))
        except asyncio.CancelledError as cancelled:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            error = cancelled  # what the listener awaited was cancelled, not this task
        except Exception as raised:
            error = raised
        return ListenerReport(cached, error, (time.perf_counter() - began_s) * 1000)
