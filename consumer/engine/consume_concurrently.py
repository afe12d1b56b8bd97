"""Consumes what was pulled, in no particular order (Java `ConsumeMessageConcurrentlyService`).

Owns the workers and the count of what is unfinished; sends back what has been consumed for too long, since it pins
its queue's progress.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from consumer.engine.clock import Clock
from consumer.engine.listening import Listener
from consumer.engine.outcome import Settlement
from consumer.engine.process_queue import CachedMessage, ProcessQueue
from consumer.engine.subscriptions import first_topic
from consumer.engine.workers import LoopWorkers, Report, ThreadWorkers, Workers

logger = logging.getLogger(__name__)

# `consumeTimeout`.
CONSUME_TIMEOUT_MS = 15 * 60 * 1000
# Java looks once per timeout, so that a hung message pins progress for up to two of them.
OVERDUE_SCAN_INTERVAL_S = 60.0


class ConsumeConcurrently:
    """`process_queues` gives those owned now. Created on the running loop."""

    def __init__(
        self,
        *,
        group: str,
        listeners: Mapping[str, Listener],
        threads: int,
        clock: Clock,
        settlement: Callable[[Callable[[CachedMessage], None]], Settlement],
        process_queues: Callable[[], Iterable[ProcessQueue]],
        at_thread_end: Callable[[], None] | None = None,
    ) -> None:
        self._group = group
        self._listeners = listeners
        self._clock = clock
        self._process_queues = process_queues
        self._settlement = settlement(self._submit_one)
        self._unfinished_count = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_stopping = False
        self._threads: Workers = ThreadWorkers(
            threads, listeners, self._reported, clock, name=f"consume-{group}", at_thread_end=at_thread_end
        )
        self._tasks: Workers = LoopWorkers(threads, listeners, self._reported, clock, name=f"consume-{group}")
        self._overdue_scan: asyncio.TimerHandle | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._overdue_scan = loop.call_later(OVERDUE_SCAN_INTERVAL_S, self._scan_overdue)

    def submit(self, messages: list[CachedMessage]) -> None:
        for cached in messages:
            self._submit_one(cached)

    async def stop(self, timeout_s: float) -> int:
        """Forgets what has not begun and waits for the rest; how many listeners still ran after `timeout_s`."""
        self._is_stopping = True
        if self._overdue_scan is not None:
            self._overdue_scan.cancel()
        self._count(-(self._threads.discard_waiting() + self._tasks.discard_waiting()))
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
                await self._settlement.drained()
        except TimeoutError:
            logger.warning("group %s: %d listeners ran on after %g s", self._group, self._unfinished_count, timeout_s)
        return self._unfinished_count

    async def close(self) -> None:
        await self._settlement.close()
        await self._tasks.close()
        await self._threads.close()

    def _submit_one(self, cached: CachedMessage) -> None:
        if self._is_stopping:
            return
        self._count(1)
        self._workers(cached).submit(cached)

    def _workers(self, cached: CachedMessage) -> Workers:
        listener = self._listeners.get(first_topic(cached.stored))
        return self._tasks if listener is None or listener.is_async else self._threads

    def _reported(self, report: Report) -> None:
        self._count(-1)
        self._settlement.settle(report)

    def _count(self, change: int) -> None:
        self._unfinished_count += change
        if self._unfinished_count:
            self._idle.clear()
        else:
            self._idle.set()

    def _scan_overdue(self) -> None:
        self._overdue_scan = asyncio.get_running_loop().call_later(OVERDUE_SCAN_INTERVAL_S, self._scan_overdue)
        self.send_back_overdue()

    def send_back_overdue(self, timeout_ms: int = CONSUME_TIMEOUT_MS) -> None:
        """Whatever their listeners say later is ignored: the retry is on its way."""
        for process_queue in list(self._process_queues()):
            for cached in process_queue.overdue(self._clock(), timeout_ms):
                logger.warning("group %s: %s has been consumed for too long; sent back", self._group, cached.stored)
                self._settlement.send_back_overdue(cached)
