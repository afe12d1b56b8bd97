"""What follows from a listener's call for its message (Java `ConsumeMessageConcurrentlyService.processConsumeResult`).

    SUCCESS            the message is removed, and the offset advances to the smallest unfinished message
    RECONSUME_LATER    the message is sent back; once a broker has stored it, as with SUCCESS
    NOT_OWNED          another member owns the queue by now and will consume the message: nothing changes

Callers: the event loop alone. Affects: process queues and offset store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any, assert_never

from consumer.engine.listening import Later
from consumer.engine.offset_store import OffsetStore
from consumer.engine.process_queue import CachedMessage
from consumer.engine.send_back import BROKER_DECIDES, FIRST_RETRY_LEVEL, SendBack
from consumer.engine.statistics import Statistics
from consumer.engine.workers import ListenerReport

logger = logging.getLogger(__name__)

# A message that no broker takes back is consumed again here after this time.
LOCAL_RETRY_AFTER_S = 5.0
# Messages sent back at the same time; further ones wait.
SEND_BACKS_MAX = 32
# Kinds of errors whose first traceback is logged; those of further kinds are logged at debug level only.
TRACEBACKS_MAX = 100


class ConsumeResult(Enum):
    SUCCESS = "success"
    RECONSUME_LATER = "reconsume later"
    NOT_OWNED = "not owned"


def result_of(report: ListenerReport) -> ConsumeResult:
    cached = report.cached
    if report.is_skipped or cached.process_queue.is_dropped or not cached.process_queue.holds(cached):
        return ConsumeResult.NOT_OWNED
    return ConsumeResult.RECONSUME_LATER if report.error is not None else ConsumeResult.SUCCESS


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
        # Errors whose traceback was logged: topic, class, line.
        self._logged_errors: set[tuple[str, type[BaseException], int]] = set()

    def handle(self, report: ListenerReport) -> None:
        result = result_of(report)
        cached = report.cached
        cached.process_queue.last_consume_ms = max(cached.process_queue.last_consume_ms, cached.started_ms)
        if not report.is_skipped:
            self._statistics.consumed(cached.stored.topic, report.duration_ms, is_ok=report.error is None)
        if report.error is not None:
            self._log(cached, report.error)
        match result:
            case ConsumeResult.SUCCESS:
                self._finish(cached)
            case ConsumeResult.RECONSUME_LATER:
                self._begin(self._return(cached, BROKER_DECIDES, lambda: self._retry_here(cached)))
            case ConsumeResult.NOT_OWNED:
                logger.info("group %s: %s belongs to another member now", self._group, cached.stored)
            case _:
                assert_never(result)

    def send_back_overdue(self, cached: CachedMessage) -> None:
        """Sends a message back while its listener still runs; if no broker takes it, it is overdue again."""
        started_ms, cached.started_ms = cached.started_ms, 0

        def still_overdue() -> None:
            cached.started_ms = started_ms

        self._begin(self._return(cached, FIRST_RETRY_LEVEL, still_overdue))

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

    def _begin(self, sending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(sending, name=f"send back of {self._group}")
        self._send_backs.add(task)
        task.add_done_callback(self._send_backs.discard)

    async def _return(self, cached: CachedMessage, delay_level: int, failed: Callable[[], None]) -> None:
        """Sends the message back and finishes it here; calls `failed` when no broker stored it."""
        async with self._send_back_slots:
            is_stored = await self._send_back.send(cached, delay_level)
        if not cached.process_queue.holds(cached):
            return
        if is_stored:
            self._finish(cached)
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

    def _finish(self, cached: CachedMessage) -> None:
        process_queue = cached.process_queue
        next_offset = process_queue.remove(cached)
        if next_offset >= 0:
            self._offsets.advance(process_queue.queue, next_offset)

    def _log(self, cached: CachedMessage, error: BaseException) -> None:
        """Writes one line per failure, with the traceback at the first of its kind (always, at debug level)."""
        if isinstance(error, Later):
            text = "group %s: topic %s message %s comes back later (times %d): %s"
            stored = cached.stored
            logger.info(text, self._group, stored.topic, stored.message_id, cached.reconsume_times, error)
            return
        kind = (cached.stored.topic, type(error), _line_of(error))
        is_new = kind not in self._logged_errors and len(self._logged_errors) < TRACEBACKS_MAX
        logger.warning(
            "group %s: listener failed on topic %s message %s (times %d): %s: %s",
            self._group,
            cached.stored.topic,
            cached.stored.message_id,
            cached.reconsume_times,
            type(error).__name__,
            error,
            exc_info=error if is_new or logger.isEnabledFor(logging.DEBUG) else None,
        )
        if is_new:
            self._logged_errors.add(kind)


def _line_of(error: BaseException) -> int:
    """Returns the line that raised it: the same error from two places is two kinds."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_lineno if trace is not None else 0
