"""Rebuilding the order of the timers from their queue, where runs are missing, damaged or don't fit the queue.

The queue of the timer topic is authoritative; `timer_runs.py` documents the index that is kept beside it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from broker.engine.schedule.timer_progress import Delivered
from broker.engine.schedule.timer_runs import PENDING_MAX, Run, RunDamaged, Timer, TimerOrder
from broker.engine.store.message_store import MessageStore
from remoting.wire.names import TIMER_TOPIC

logger = logging.getLogger(__name__)


def timer_of(tags_code: int, queue_offset: int) -> Timer:
    """Returns the timer of a consume-queue entry, whose `tags_code` holds its due time (`store/due_times.py`)."""
    return Timer(abs(tags_code), tags_code >= 0, queue_offset)


class TimerIndex:
    """Fills `order` with the timers of the queue that are not in `delivered`, and repairs it from there."""

    def __init__(self, store: MessageStore, order: TimerOrder, delivered: Delivered) -> None:
        self._store = store
        self._order = order
        self._delivered = delivered

    def take_up(self, end: int) -> None:
        """Adds all waiting timers up to the queue offset `end` at the start: from runs that fit, the others from the
        queue. Raises OSError."""
        position = self._delivered.lowest
        for run in self._order.open_runs(position, end):
            self._read_queue(position, run.first)
            if not self._take_up_run(run):
                logger.warning("%s is not used: it lacks timers that wait", run.path)
                self._read_queue(max(position, run.first), run.end)
            position = max(position, run.end)
        self._read_queue(position, end)

    def take(self) -> Timer | None:
        """Removes and returns the first timer of the order.

        Returns None when that one was delivered already, or the order was repaired: call it again. Raises OSError.
        """
        try:
            timer = self._order.take()
        except RunDamaged as damage:
            self._reindex(damage)
            return None
        if timer is None or timer.queue_offset in self._delivered:
            return None
        entry = self._store.queue_entry(TIMER_TOPIC, 0, timer.queue_offset)
        if entry is not None and timer_of(entry[2], timer.queue_offset) != timer:
            # The index is wrong: the queue is authoritative.
            self._order.put_back([timer_of(entry[2], timer.queue_offset)])
            return None
        return timer

    def _reindex(self, damage: RunDamaged) -> None:
        """Drops the damaged run, and reads its range from the queue."""
        logger.error("timers from %d on are indexed again: %s", damage.first, damage)
        self._order.drop(damage.path)
        self._read_queue(max(damage.first, self._delivered.lowest), damage.end)

    def _take_up_run(self, run: Run) -> bool:
        """Adds the run, or removes it when it is damaged or lacks timers that wait; returns whether it was added.

        It lacks timers whose copies a power cut has taken, so that they wait again.
        """
        try:
            waiting_count = sum(queue_offset not in self._delivered for queue_offset in run.queue_offsets())
            if waiting_count == self._delivered.missing(run.first, run.end):
                self._order.add_run(run)
                return True
        except RunDamaged as damage:
            logger.error("%s", damage)
        self._order.drop(run.path)
        return False

    def _read_queue(self, first: int, end: int) -> None:
        """Adds the waiting timers of a range of queue offsets: as runs, the newest ones in memory."""
        while first < end:
            until = min(end, first + PENDING_MAX)
            timers = list(self._waiting_between(first, until))
            if until < self._store.max_offset(TIMER_TOPIC, 0):
                if timers:
                    self._order.write_run(first, until, timers)
            else:
                for timer in timers:
                    self._order.add(timer)
            first = until

    def _waiting_between(self, first: int, end: int) -> Iterator[Timer]:
        for queue_offset in range(first, end):
            if queue_offset not in self._delivered:
                entry = self._store.queue_entry(TIMER_TOPIC, 0, queue_offset)
                yield timer_of(entry[2] if entry is not None else 0, queue_offset)
