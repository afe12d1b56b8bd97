"""Consumes each queue's messages one after the other, in order (Java `ConsumeMessageOrderlyService`).

Of one queue at most one listener runs at any time, whatever happens to the queue meanwhile: queues are consumed beside
each other, as many as there are threads. A message that fails holds up its queue: it comes again after
`suspend_ms`, until `max_reconsume_times` is reached; then it becomes a dead letter and the queue goes on.

A listener begins only while this member holds the broker's lock of the queue (`queue_locks.py`; broadcasting needs
none). The offset advances with each message. Callers: the event loop alone. Affects: process queues and offset store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from consumer.engine.clock import Clock
from consumer.engine.consuming import Consuming
from consumer.engine.failure_log import FailureLog
from consumer.engine.failure_policy import DEAD_LETTER, FailurePolicy
from consumer.engine.failures import Failures
from consumer.engine.listener_call import ListenerCall
from consumer.engine.listening import Listener
from consumer.engine.offset_store import OffsetStore
from consumer.engine.process_queue import CachedMessage, ProcessQueue
from consumer.engine.queue_locks import QueueLocks
from consumer.engine.send_back import SendBack
from consumer.engine.statistics import Statistics
from consumer.engine.workers import Workers
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.failures import FailureReason

logger = logging.getLogger(__name__)

# RocketMQ's `suspendCurrentQueueTimeMillis`, and the limits that it must lie within.
SUSPEND_MS = 1000
SUSPEND_MS_MIN = 10
SUSPEND_MS_MAX = 30_000


@dataclass(frozen=True, slots=True)
class OrderlyLimits:
    """`threads` queues are consumed at once; one whose message failed rests for `suspend_ms`, and its message comes
    again up to `max_reconsume_times` times.
    """

    threads: int
    suspend_ms: int
    max_reconsume_times: int


class ConsumeOrderly(Consuming):
    """`process_queues` holds the queues owned now; `locks` is None where no broker locks queues.

    Made on the running loop.
    """

    def __init__(
        self,
        *,
        group: str,
        listeners: Mapping[str, Listener],
        limits: OrderlyLimits,
        process_queues: Mapping[MessageQueue, ProcessQueue],
        locks: QueueLocks | None,
        offsets: OffsetStore,
        send_back: SendBack,
        statistics: Statistics,
        failures: Failures,
        clock: Clock,
        at_thread_end: Callable[[], None] | None = None,
    ) -> None:
        self._group = group
        self._limits = limits
        self._process_queues = process_queues
        self._locks = locks
        self._offsets = offsets
        self._send_back = send_back
        self._statistics = statistics
        self._failures = failures
        self._log = FailureLog(group)
        self._workers = Workers(
            limits.threads, listeners, self._reported, clock, name=f"consume-{group}", at_thread_end=at_thread_end
        )
        # Queues of which a message is with the workers or on its way to the dead letters: set once it is not any more.
        self._busy: dict[MessageQueue, asyncio.Event] = {}
        self._resting: dict[MessageQueue, asyncio.TimerHandle] = {}
        self._dead_letters: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    def start(self) -> None: ...

    def submit(self, messages: list[CachedMessage]) -> None:
        self._go_on(messages[0].process_queue.queue)

    def go_on(self) -> None:
        """Begins what waited for a lock."""
        for queue in list(self._process_queues):
            self._go_on(queue)

    def is_busy(self, queue: MessageQueue) -> bool:
        """Returns True while a listener of `queue` runs."""
        return queue in self._busy

    async def finished(self, queue: MessageQueue) -> None:
        """Returns when no listener of `queue` runs. It must not be owned any more: no further one begins."""
        busy = self._busy.get(queue)
        if busy is not None:
            await busy.wait()

    async def stop(self, timeout_s: float) -> int:
        self._is_stopping = True
        for resting in self._resting.values():
            resting.cancel()
        discarded = len(self._workers.discard_waiting())
        try:
            async with asyncio.timeout(timeout_s):
                while len(self._busy) > discarded:
                    waits = [asyncio.create_task(busy.wait(), name="end of a listener") for busy in self._busy.values()]
                    try:
                        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        for wait in waits:
                            wait.cancel()
        except TimeoutError:
            logger.warning(
                "group %s: %d listeners ran on after %g s", self._group, len(self._busy) - discarded, timeout_s
            )
            return len(self._busy) - discarded
        for queue in list(self._busy):  # what was discarded
            self._free(queue)
        return 0

    async def close(self) -> None:
        for task in self._dead_letters:
            task.cancel()
        await asyncio.gather(*self._dead_letters, return_exceptions=True)
        await self._workers.close()

    def _go_on(self, queue: MessageQueue) -> None:
        """Begins the queue's first message, if its turn has come."""
        process_queue = self._process_queues.get(queue)
        if self._is_stopping or process_queue is None or queue in self._busy or queue in self._resting:
            return
        cached = process_queue.first
        if cached is None:
            return
        if self._locks is not None and not self._locks.holds(queue):
            self._locks.renew_soon()
            return
        self._busy[queue] = asyncio.Event()
        self._workers.submit([cached])

    def _reported(self, calls: list[ListenerCall]) -> None:
        for call in calls:
            self._handle(call)

    def _handle(self, call: ListenerCall) -> None:
        """Handles the end of a call, which had one message."""
        cached, process_queue = call.first, call.first.process_queue
        queue = process_queue.queue
        process_queue.last_consume_ms = max(process_queue.last_consume_ms, cached.started_ms)
        is_ok = call.error is None
        if not call.is_skipped:
            self._statistics.consumed(cached.stored.topic, call.duration_ms, ok=int(is_ok), failed=int(not is_ok))
        if call.error is not None:
            self._log.log(call, call.error)
        if process_queue.is_dropped or call.is_skipped:
            logger.info("group %s: %s belongs to another member now", self._group, cached.stored)
        elif call.error is None:
            self._statistics.delivered(call.topic, call.messages)
            self._finish(cached)
        else:
            reason = self._failures.add(call.listener, cached, call.error)
            policy = call.listener.failures if call.listener is not None else FailurePolicy()
            delay_level = policy.delay_level(call.error)
            if delay_level == DEAD_LETTER or cached.reconsume_times >= self._limits.max_reconsume_times:
                self._begin_dead_letter(cached, delay_level, reason)
                return
            self._rest(cached)
        self._free(queue)
        self._go_on(queue)

    def _finish(self, cached: CachedMessage) -> None:
        next_offset = cached.process_queue.remove([cached])
        if next_offset >= 0:
            self._offsets.advance(cached.process_queue.queue, next_offset)

    def _rest(self, cached: CachedMessage) -> None:
        """Lets the queue rest; then the same message comes again."""
        cached.reconsume_times += 1
        cached.started_ms = 0
        queue = cached.process_queue.queue

        def rested() -> None:
            del self._resting[queue]
            self._go_on(queue)

        self._resting[queue] = asyncio.get_running_loop().call_later(self._limits.suspend_ms / 1000, rested)

    def _begin_dead_letter(self, cached: CachedMessage, delay_level: int, reason: FailureReason | None) -> None:
        sending = self._send_dead_letter(cached, delay_level, reason)
        task = asyncio.create_task(sending, name=f"dead letter of {self._group}")
        self._dead_letters.add(task)
        task.add_done_callback(self._dead_letters.discard)

    async def _send_dead_letter(self, cached: CachedMessage, delay_level: int, reason: FailureReason | None) -> None:
        """Goes on with the next message once a broker has stored the dead letter; until then it is tried again."""
        queue = cached.process_queue.queue
        try:
            is_stored = await self._send_back.send_copy(cached, delay_level, reason)
            if not cached.process_queue.is_dropped:
                if is_stored:
                    self._finish(cached)
                else:
                    self._rest(cached)
        finally:
            self._free(queue)
        self._go_on(queue)

    def _free(self, queue: MessageQueue) -> None:
        self._busy.pop(queue).set()
