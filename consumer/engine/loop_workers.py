"""Calls async listeners in tasks on the event loop."""

from __future__ import annotations

import asyncio
import time
from collections import deque

from consumer.engine.clock import Clock
from consumer.engine.listener_call import ListenerCall, Reported
from consumer.engine.listening import call_async, is_of_listener

# Async listeners that never await may keep the event loop for so long before other tasks run.
LOOP_SLICE_S = 0.005


class LoopWorkers:
    """Up to `count` listeners at once. Calls that finish in one turn of the event loop are reported together."""

    def __init__(self, count: int, reported: Reported, clock: Clock, *, name: str) -> None:
        self._count = count
        self._reported = reported
        self._clock = clock
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._inbox: deque[ListenerCall] = deque()
        # A future per task that waits for a call: set to wake it.
        self._sleeping: list[asyncio.Future[None]] = []
        self._finished: list[ListenerCall] = []
        self._tasks: list[asyncio.Task[None]] = []

    def submit(self, calls: list[ListenerCall]) -> None:
        self._inbox.extend(calls)
        for _ in calls:
            if self._sleeping:
                self._sleeping.pop().set_result(None)
            elif len(self._tasks) < self._count:
                self._tasks.append(asyncio.create_task(self._work(), name=f"{self._name}-{len(self._tasks) + 1}"))
            else:
                break

    def discard_waiting(self) -> list[ListenerCall]:
        discarded = list(self._inbox)
        self._inbox.clear()
        return discarded

    async def close(self) -> None:
        """Cancels listeners that still run."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work(self) -> None:
        slice_end_s = 0.0
        while True:
            while not self._inbox:
                awake = self._loop.create_future()
                self._sleeping.append(awake)
                await awake
            call = self._inbox.popleft()
            began_s = time.perf_counter()
            if began_s > slice_end_s:
                await asyncio.sleep(0)
                began_s = time.perf_counter()
                slice_end_s = began_s + LOOP_SLICE_S
            await self._carry_out(call, began_s)
            if not self._finished:
                self._loop.call_soon(self._report)
            self._finished.append(call)

    def _report(self) -> None:
        finished, self._finished = self._finished, []
        self._reported(finished)

    async def _carry_out(self, call: ListenerCall, began_s: float) -> None:
        if call.first.process_queue.is_dropped:
            call.is_skipped = True
            return
        try:
            listener, argument = call.begin(self._clock())
            await call_async(listener, argument)
        except BaseException as raised:  # SystemExit in a listener ends neither this task nor the process
            if not is_of_listener(raised):
                raise
            call.error = raised
        call.duration_ms = (time.perf_counter() - began_s) * 1000
