"""What becomes of a message after its listener: the closed set, and the one place that acts on it.

    CONSUMED   progress moves
    LATER      sent back; once a broker has it, progress moves, for it comes again by the retry topic
    IGNORED    its queue belongs to another member by now, which will consume it: nothing moves

Callers: the event loop alone. Affects: process queues, offset store, and `released` for whoever waits for room.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any, assert_never

from consumer.engine.listening import Later
from consumer.engine.offset_store import OffsetStore
from consumer.engine.process_queue import CachedMessage, ProcessQueue
from consumer.engine.send_back import BROKER_DECIDES, FIRST_RETRY_LEVEL, SendBack
from consumer.engine.statistics import Statistics
from consumer.engine.workers import Report

logger = logging.getLogger(__name__)

# A message that could not be sent back is consumed again here.
LOCAL_RETRY_AFTER_S = 5.0
# Send-backs in flight at once; further failed messages wait for their turn.
SEND_BACKS_MAX = 32
# Kinds of errors whose traceback was shown; further kinds show theirs at debug level.
TRACEBACKS_MAX = 100


class Outcome(Enum):
    CONSUMED = "consumed"
    LATER = "later"
    IGNORED = "ignored"


def outcome_of(report: Report) -> Outcome:
    cached = report.cached
    if report.is_skipped or cached.process_queue.is_dropped or not cached.process_queue.holds(cached):
        return Outcome.IGNORED
    return Outcome.LATER if report.error is not None else Outcome.CONSUMED


class Settlement:
    """`again` puts a message into the workers' inbox once more."""

    def __init__(
        self,
        *,
        group: str,
        offsets: OffsetStore,
        send_back: SendBack,
        statistics: Statistics,
        released: Callable[[ProcessQueue], None],
        again: Callable[[CachedMessage], None],
    ) -> None:
        self._group = group
        self._offsets = offsets
        self._send_back = send_back
        self._statistics = statistics
        self._released = released
        self._again = again
        self._turns = asyncio.Semaphore(SEND_BACKS_MAX)
        self._under_way: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.TimerHandle] = set()
        self._shown: set[tuple[str, type[BaseException], int]] = set()

    def settle(self, report: Report) -> None:
        outcome = outcome_of(report)
        cached = report.cached
        cached.process_queue.last_consume_ms = max(cached.process_queue.last_consume_ms, cached.started_ms)
        if not report.is_skipped:
            self._statistics.consumed(cached.stored.topic, report.took_ms, is_ok=report.error is None)
        if report.error is not None:
            self._log(cached, report.error)
        match outcome:
            case Outcome.CONSUMED:
                self._finish(cached)
            case Outcome.LATER:
                self.send_back(cached)
            case Outcome.IGNORED:
                logger.info("group %s: %s belongs to another member now", self._group, cached.stored)
            case _:
                assert_never(outcome)

    def send_back(self, cached: CachedMessage) -> None:
        self._begin(self._return(cached, BROKER_DECIDES, lambda: self._retry_here(cached)))

    def send_back_overdue(self, cached: CachedMessage) -> None:
        """Its listener still runs; should nobody take the message, it is overdue again at the next look."""
        started_ms, cached.started_ms = cached.started_ms, 0

        def still_overdue() -> None:
            cached.started_ms = started_ms

        self._begin(self._return(cached, FIRST_RETRY_LEVEL, still_overdue))

    def _begin(self, sending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(sending, name=f"send back of {self._group}")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def drained(self) -> None:
        """Returns when nothing is on its way back to a broker."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    async def close(self) -> None:
        for handle in self._waiting:
            handle.cancel()
        self._waiting.clear()
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _return(self, cached: CachedMessage, delay_level: int, failed: Callable[[], None]) -> None:
        async with self._turns:
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

        def again() -> None:
            self._waiting.discard(handle)
            if cached.process_queue.holds(cached):
                self._again(cached)

        handle = loop.call_later(LOCAL_RETRY_AFTER_S, again)
        self._waiting.add(handle)

    def _finish(self, cached: CachedMessage) -> None:
        process_queue = cached.process_queue
        progress = process_queue.remove(cached)
        if progress >= 0:
            self._offsets.advance(process_queue.queue, progress)
        self._released(process_queue)

    def _log(self, cached: CachedMessage, error: BaseException) -> None:
        """One line per failure; the traceback with the first of its kind, then at debug level."""
        if isinstance(error, Later):
            text = "group %s: topic %s message %s comes back later (times %d): %s"
            stored = cached.stored
            logger.info(text, self._group, stored.topic, stored.message_id, cached.reconsume_times, error)
            return
        kind = (cached.stored.topic, type(error), _line_of(error))
        is_new = kind not in self._shown and len(self._shown) < TRACEBACKS_MAX
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
            self._shown.add(kind)


def _line_of(error: BaseException) -> int:
    """Where it was raised: the same error from two places is two kinds."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_lineno if trace is not None else 0
