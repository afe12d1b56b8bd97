"""Consumes the messages of all queues at once, in no particular order (Java `ConsumeMessageConcurrentlyService`).

Owns the workers and the count of unfinished listener calls. Sends back messages whose listener has run for too long,
since the smallest unfinished offset of a queue is what can be committed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from consumer.engine.breaker import Breaker, BreakerGate
from consumer.engine.clock import Clock
from consumer.engine.consume_result import LOCAL_RETRY_AFTER_S, ResultHandler
from consumer.engine.consuming import Consuming
from consumer.engine.failures import Failures
from consumer.engine.listener_call import ListenerCall
from consumer.engine.listening import Listener
from consumer.engine.offset_store import OffsetStore
from consumer.engine.process_queue import CachedMessage, ProcessQueue
from consumer.engine.send_back import SendBack
from consumer.engine.statistics import Statistics
from consumer.engine.subscriptions import original_topic
from consumer.engine.suspension import Suspension
from consumer.engine.workers import Workers
from remoting.wire.bodies.message_queue import MessageQueue

logger = logging.getLogger(__name__)

# RocketMQ's `consumeTimeout`.
CONSUME_TIMEOUT_MS = 15 * 60 * 1000
# Java scans once per timeout, so that a listener that hangs can hold up progress for twice the timeout.
OVERDUE_SCAN_INTERVAL_S = 60.0


@dataclass(frozen=True, slots=True)
class ConcurrentLimits:
    """`threads` listeners run at once; one that runs longer than `consume_timeout_ms` is given up on.

    A message that no broker takes back is consumed again here after `local_retry_after_s`.
    """

    threads: int = 20
    consume_timeout_ms: int = CONSUME_TIMEOUT_MS
    overdue_scan_interval_s: float = OVERDUE_SCAN_INTERVAL_S
    local_retry_after_s: float = LOCAL_RETRY_AFTER_S

    @property
    def scan_interval_s(self) -> float:
        """Returns how often overdue messages are looked for: twice within the time-out at least."""
        return min(self.overdue_scan_interval_s, self.consume_timeout_ms / 2000)


class ConsumeConcurrently(Consuming):
    """`process_queues` holds the queues owned now. Made on the running loop."""

    def __init__(
        self,
        *,
        group: str,
        listeners: Mapping[str, Listener],
        limits: ConcurrentLimits,
        process_queues: Mapping[MessageQueue, ProcessQueue],
        offsets: OffsetStore,
        send_back: SendBack,
        statistics: Statistics,
        failures: Failures,
        clock: Clock,
        suspension: Suspension,
        breaker: Breaker | None = None,
        at_thread_end: Callable[[], None] | None = None,
    ) -> None:
        self._group = group
        self._listeners = listeners
        self._limits = limits
        self._process_queues = process_queues
        self._clock = clock
        self._results = ResultHandler(
            group=group,
            offsets=offsets,
            send_back=send_back,
            statistics=statistics,
            failures=failures,
            consume_again=lambda cached: self.submit([cached]),
            local_retry_after_s=limits.local_retry_after_s,
        )
        self._workers = Workers(
            limits.threads, listeners, self._reported, clock, name=f"consume-{group}", at_thread_end=at_thread_end
        )
        self._gate = BreakerGate(breaker, group, suspension, self._begin) if breaker is not None else None
        self._unfinished_count = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_stopping = False
        self._overdue_scan: asyncio.TimerHandle | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._overdue_scan = loop.call_later(self._limits.scan_interval_s, self._scan_overdue)

    def submit(self, messages: list[CachedMessage]) -> None:
        if self._is_stopping:
            return
        if self._gate is None:
            self._begin(messages)
        else:
            self._gate.submit(messages)

    async def stop(self, timeout_s: float) -> int:
        self._is_stopping = True
        if self._overdue_scan is not None:
            self._overdue_scan.cancel()
        if self._gate is not None:
            self._gate.stop()
        self._count(-len(self._workers.discard_waiting()))
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
                await self._results.sent_back()
        except TimeoutError:
            logger.warning("group %s: %d listeners ran on after %g s", self._group, self._unfinished_count, timeout_s)
        return self._unfinished_count

    async def close(self) -> None:
        await self._results.close()
        await self._workers.close()

    def _reported(self, calls: list[ListenerCall]) -> None:
        self._count(-len(calls))
        self._results.handle(calls)
        if self._gate is None or self._is_stopping:
            return
        for call in calls:
            if self._gate.judge(call):
                waiting = self._workers.discard_waiting()
                self._count(-len(waiting))
                self._gate.take_back(waiting)

    def _begin(self, messages: Sequence[CachedMessage]) -> None:
        self._count(self._workers.submit(messages))

    def _count(self, change: int) -> None:
        self._unfinished_count += change
        if self._unfinished_count:
            self._idle.clear()
        else:
            self._idle.set()

    def _scan_overdue(self) -> None:
        """Sends overdue messages back; what their listeners return later is ignored."""
        loop = asyncio.get_running_loop()
        self._overdue_scan = loop.call_later(self._limits.scan_interval_s, self._scan_overdue)
        for process_queue in list(self._process_queues.values()):
            for cached in process_queue.overdue(self._clock(), self._limits.consume_timeout_ms):
                logger.warning("group %s: %s has been consumed for too long; sent back", self._group, cached.stored)
                listener = self._listeners.get(original_topic(cached.stored))
                self._results.send_back_overdue(listener, cached, self._limits.consume_timeout_ms)
