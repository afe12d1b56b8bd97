"""What follows from a listener's call for its messages (Java `ConsumeMessageConcurrentlyService.processConsumeResult`).

    consumed           the message is removed, and the offset advances to the smallest unfinished message
    to consume later   the message is sent back; once a broker has stored it, as with a consumed one
    not owned          another member owns the queue by now and will consume the message: nothing changes

Callers: the event loop alone. Affects: process queues and offset store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from consumer.engine.failure_log import FailureLog
from consumer.engine.failure_policy import FailurePolicy
from consumer.engine.failures import Failures
from consumer.engine.listener_call import ListenerCall
from consumer.engine.listening import Listener
from consumer.engine.offset_store import OffsetStore
from consumer.engine.outcomes import ConsumeTimedOut, Later
from consumer.engine.process_queue import CachedMessage, ProcessQueue
from consumer.engine.send_back import FIRST_RETRY_LEVEL, SendBack
from consumer.engine.statistics import Statistics
from remoting.wire.failures import FailureReason

logger = logging.getLogger(__name__)

# A message that no broker takes back is consumed again here after this time.
LOCAL_RETRY_AFTER_S = 5.0
# Messages sent back at the same time; further ones wait.
SEND_BACKS_MAX = 32
# Of a retry whose listener was removed.
_NO_POLICY = FailurePolicy()


def consumed_count(call: ListenerCall) -> int:
    """Returns how many of the call's messages, from the first on, are consumed."""
    if call.error is None:
        return len(call.messages)
    return min(call.error.consumed, len(call.messages)) if isinstance(call.error, Later) else 0


def _failed_alone(call: ListenerCall, cached: CachedMessage, error: Exception) -> ListenerCall:
    """Returns the call as it would have been for a message of the batch that could not be read."""
    failed = ListenerCall(call.topic, call.listener, (cached,))
    failed.error = error
    return failed


class ResultHandler:
    """`consume_again` submits a message to the workers once more."""

    def __init__(
        self,
        *,
        group: str,
        offsets: OffsetStore,
        send_back: SendBack,
        statistics: Statistics,
        consume_again: Callable[[CachedMessage], None],
        failures: Failures,
        local_retry_after_s: float = LOCAL_RETRY_AFTER_S,
    ) -> None:
        self._group = group
        self._offsets = offsets
        self._send_back = send_back
        self._statistics = statistics
        self._consume_again = consume_again
        self._local_retry_after_s = local_retry_after_s
        self._send_back_slots = asyncio.Semaphore(SEND_BACKS_MAX)
        self._send_backs: set[asyncio.Task[None]] = set()
        self._local_retries: set[asyncio.TimerHandle] = set()
        self._failures = failures
        self._log = FailureLog(group)

    def handle(self, calls: list[ListenerCall]) -> None:
        consumed: dict[ProcessQueue, list[ListenerCall]] = {}
        for call in calls:
            process_queue = call.first.process_queue
            for cached, error in call.spoiled:
                self._handle_other(_failed_alone(call, cached, error))
            if call.error is None and not call.is_skipped and not process_queue.is_dropped:
                consumed.setdefault(process_queue, []).append(call)
            else:
                self._handle_other(call)
        for process_queue, of_queue in consumed.items():
            messages = [cached for call in of_queue for cached in call.messages]
            duration_ms = sum([call.duration_ms for call in of_queue])
            self._statistics.consumed(process_queue.queue.topic, duration_ms, calls=len(of_queue), ok=len(messages))
            for call in of_queue:
                self._statistics.delivered(call.topic, call.messages)
            self._finish(process_queue, messages)

    def send_back_overdue(self, listener: Listener | None, cached: CachedMessage, timeout_ms: int) -> None:
        """Sends a message back while its listener still runs; if no broker takes it, it is overdue again."""
        error = ConsumeTimedOut(f"its listener ran for more than {timeout_ms / 1000:g} s")
        reason = self._failures.add(listener, cached, error)
        started_ms, cached.started_ms = cached.started_ms, 0

        def still_overdue() -> None:
            cached.started_ms = started_ms

        self._begin(self._return(cached, FIRST_RETRY_LEVEL, reason, still_overdue))

    async def sent_back(self) -> None:
        """Returns when no message is on its way back to a broker."""
        while self._send_backs:
            await asyncio.wait(self._send_backs)

    async def close(self) -> None:
        for handle in self._local_retries:
            handle.cancel()
        self._local_retries.clear()
        for task in self._send_backs:
            task.cancel()
        await asyncio.gather(*self._send_backs, return_exceptions=True)

    def _handle_other(self, call: ListenerCall) -> None:
        """Handles a call that failed, or whose queue was lost."""
        process_queue, count = call.first.process_queue, consumed_count(call)
        if not call.is_skipped:
            failed = len(call.messages) - count
            self._statistics.consumed(process_queue.queue.topic, call.duration_ms, ok=count, failed=failed)
        if call.error is not None:
            self._log.log(call, call.error)
        if call.is_skipped or process_queue.is_dropped:
            logger.info("group %s: %s belongs to another member now", self._group, call)
            return
        self._statistics.delivered(call.topic, call.messages[:count])
        self._finish(process_queue, call.messages[:count])
        if call.error is not None:
            self._consume_later(call, call.messages[count:], call.error)

    def _consume_later(self, call: ListenerCall, messages: Sequence[CachedMessage], error: BaseException) -> None:
        policy = call.listener.failures if call.listener is not None else _NO_POLICY
        delay_level = policy.delay_level(error)
        for cached in messages:
            if cached.process_queue.holds(cached):  # else it was sent back as overdue
                reason = self._failures.add(call.listener, cached, error)
                self._begin(self._return(cached, delay_level, reason, partial(self._retry_here, cached)))

    def _begin(self, sending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(sending, name=f"send back of {self._group}")
        self._send_backs.add(task)
        task.add_done_callback(self._send_backs.discard)

    async def _return(
        self, cached: CachedMessage, delay_level: int, reason: FailureReason | None, failed: Callable[[], None]
    ) -> None:
        """Sends the message back and finishes it here; calls `failed` when no broker stored it."""
        async with self._send_back_slots:
            is_stored = await self._send_back.send(cached, delay_level, reason)
        if not cached.process_queue.holds(cached):
            return
        if is_stored:
            self._finish(cached.process_queue, (cached,))
        else:
            failed()

    def _retry_here(self, cached: CachedMessage) -> None:
        cached.reconsume_times += 1
        cached.started_ms = 0
        loop = asyncio.get_running_loop()
        handle: asyncio.TimerHandle

        def retry() -> None:
            self._local_retries.discard(handle)
            if cached.process_queue.holds(cached):
                self._consume_again(cached)

        handle = loop.call_later(self._local_retry_after_s, retry)
        self._local_retries.add(handle)

    def _finish(self, process_queue: ProcessQueue, messages: Sequence[CachedMessage]) -> None:
        if not messages:
            return
        begun_ms = max([cached.started_ms for cached in messages])
        process_queue.last_consume_ms = max(process_queue.last_consume_ms, begun_ms)
        held_count = process_queue.message_count
        next_offset = process_queue.remove(messages)
        if held_count - process_queue.message_count < len(messages):
            logger.info(
                "group %s: a listener of %s ended too late: sent back meanwhile", self._group, process_queue.name
            )
        if next_offset >= 0:
            self._offsets.advance(process_queue.queue, next_offset)
