"""Messages with a delivery time: how they wait in the timer topic, and their delivery to their real topics.

RocketMQ's `TimerMessageStore`. A message is stored in queue 0 of rmq_sys_wheel_timer; its consume-queue entry holds
the due time (`store/due_times.py`). `timer_runs.py` keeps the order in which timers fall due, `timer_progress.py` which
of them were delivered; both are derived from the log and can be built again from it (`timer_index.py`).

A delivery appends a copy (`copies.py`), or leaves the message out when a delete marker of its slot names it
(`delete_markers.py`). The marker itself counts as delivered only when the whole slot has passed, so that a kill in
between loses neither of the two.

No message is delivered early: a timer is due by the broker's own clock, whatever time a driver sends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from broker.engine.schedule.copies import (
    STEP_BYTES_MAX,
    STEP_MESSAGES_MAX,
    append_copies,
    copies_from,
    is_copy_from,
    source_offset,
    timer_copy,
)
from broker.engine.schedule.delete_markers import DeleteMarkers
from broker.engine.schedule.due_tasks import StepResult
from broker.engine.schedule.timer_index import TimerIndex, timer_of
from broker.engine.schedule.timer_progress import Delivered, TimerProgress, TimerProgressFile
from broker.engine.schedule.timer_runs import Timer, TimerOrder
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Appended, MessageDraft
from remoting.wire.bodies.scheduler import AgendaEntry
from remoting.wire.names import TIMER_TOPIC
from remoting.wire.properties import Property

logger = logging.getLogger(__name__)

KIND = "timer"
FOLDER_NAME = "timer"
# A step's key is the first millisecond of the minute in which the first timer falls due.
RANGE_MS = 60_000
# Entries examined in one step: more than messages, because recalled ones and ones delivered already cost little.
STEP_ENTRIES_MAX = 1_024
# How far the progress file may lag behind the log, in time while timers are delivered and in bytes of other messages:
# so much of the log is read again after a kill.
SAVE_INTERVAL_S = 1.0
SAVE_INTERVAL_BYTES = 16 * 1024 * 1024


class _Taken(NamedTuple):
    """A timer that a step carries out. `draft` is None when no copy is appended: recalled, or undeliverable."""

    timer: Timer
    draft: MessageDraft | None
    byte_count: int


class TimerDelivery:
    """DueTaskHandler of the kind "timer"; a key is the first millisecond of a minute.

    Callers: the runtime (`recover`, `stop`), the store's listener (`appended`) and its retention (`pinned`), the
    scheduler (`agenda`, `next_due_ms`, `carry_out`). All on the event loop.
    """

    def __init__(
        self,
        store: MessageStore,
        folder: Path,
        on_earlier_due: Callable[[], None],
        clock: Callable[[], int],
        *,
        on_delivered: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`folder`: the store's. `on_earlier_due` is called when a new timer falls due before all others that wait,
        `on_delivered` with the number of messages that a step delivered. `clock`: ms since the epoch."""
        self._store = store
        self._on_delivered = on_delivered
        self._on_earlier_due = on_earlier_due
        self._clock = clock
        self._order = TimerOrder(folder / FOLDER_NAME)
        self._file = TimerProgressFile(folder / FOLDER_NAME)
        self._delivered = Delivered()
        self._index = TimerIndex(store, self._order, self._delivered)
        self._waiting_count = 0
        self._markers = DeleteMarkers()
        self._late_ms = -1
        self._counted_to = 0
        self._unsaved: TimerProgress | None = None
        self._has_changed = False
        self._saving: asyncio.TimerHandle | None = None

    # start and stop

    def recover(self) -> None:
        """Reads the progress file, counts the copies in the log beyond it, and opens or builds the runs.

        Call it once, before the first append. Raises OSError.
        """
        low, high = self._store.min_offset(TIMER_TOPIC, 0), self._store.max_offset(TIMER_TOPIC, 0)
        saved = self._file.read()
        if saved is None:
            saved = TimerProgress(low, self._store.min_commit_log_offset, b"")
        self._delivered = Delivered(saved.lowest, saved.bits).within(low, high)
        if self._delivered.lowest < high:
            self._count_copies_from(max(saved.counted_to, self.pinned() or 0))
        self._waiting_count = self._delivered.missing(low, high)
        self._index = TimerIndex(self._store, self._order, self._delivered)
        self._index.take_up(high)
        self._counted_to = self._store.max_commit_log_offset
        if high:
            # The log may end before the offset in the file, which would be wrong once the log has grown past it.
            self._file.write(self._snapshot())

    async def stop(self) -> None:
        """Saves the progress, if the copies that it counts are flushed."""
        if self._saving is not None:
            self._saving.cancel()
            self._saving = None
        if not self._has_changed and self._unsaved is None:
            return
        snapshot = self._snapshot()
        flushed = asyncio.get_running_loop().create_future()
        self._store.when_flushed(snapshot.counted_to, flushed.set_result)
        if await flushed is None and self._store.flushed_commit_log_offset >= snapshot.counted_to:
            self._file.write(snapshot)

    # for the scheduler

    def agenda(self) -> list[AgendaEntry]:
        first = self._order.first
        if first is None:
            return []
        return [
            AgendaEntry(
                kind=KIND,
                key=str(_range_of(first.due_ms)),
                next_due_ms=first.due_ms,
                waiting_count=self._waiting_count,
                late_ms=self._late_ms,
            )
        ]

    @property
    def next_due_ms(self) -> int | None:
        first = self._order.first
        return None if first is None else first.due_ms

    @property
    def waiting_count(self) -> int:
        """Returns how many timers wait, including delete markers whose slot is not over."""
        return self._waiting_count

    def carry_out(self, key: str, until_ms: int) -> StepResult:
        """Delivers timers of the minute `key` that are due by `until_ms` and by now.

        Raises KeyError for a key that is no minute, StoreError.
        """
        if not key.isdecimal() or int(key) % RANGE_MS:
            raise KeyError(key)
        now_ms = self._clock()
        taken = self._collect(int(key), min(until_ms, now_ms), now_ms)
        try:
            appended_count = self._append(taken)
            self._on_delivered(appended_count)
        except Exception:
            self._order.put_back(one.timer for one in taken if one.timer.queue_offset not in self._delivered)
            raise
        for one in taken:
            self._done(one.timer.queue_offset)
        self._end_slots()
        if not appended_count:
            return StepResult(0, -1)
        self._late_ms = max(0, now_ms - min(one.timer.due_ms for one in taken if one.draft is not None))
        return StepResult(appended_count, self._late_ms)

    # for the store

    def appended(self, appended: list[Appended]) -> None:
        """Adds the timers among the messages that were just stored, of whatever topic."""
        for one in appended:
            if one.topic == TIMER_TOPIC and one.queue_id == 0:
                self._add(timer_of(one.tags_code, one.queue_offset))
        end = appended[-1].commit_log_offset
        if end - self._counted_to > SAVE_INTERVAL_BYTES and self._waiting_count:
            self._counted_to = end
            self._save_soon()

    def _add(self, timer: Timer) -> None:
        first = self._order.first
        self._order.add(timer)
        self._waiting_count += 1
        if first is None or timer < first:
            self._on_earlier_due()

    def pinned(self) -> int | None:
        """Returns the commit-log offset of the oldest waiting message; a damaged queue entry pins nothing."""
        for queue_offset in range(self._delivered.lowest, self._store.max_offset(TIMER_TOPIC, 0)):
            entry = self._store.queue_entry(TIMER_TOPIC, 0, queue_offset)
            if entry is not None:
                return entry[0]
        return None

    # delivering

    def _collect(self, range_ms: int, until_ms: int, now_ms: int) -> list[_Taken]:
        """Returns the timers to carry out, in order, at most one step's worth.

        Delete markers are put into `_markers` instead.
        """
        taken: list[_Taken] = []
        seen: set[int] = set()
        message_count = byte_count = 0
        for _ in range(STEP_ENTRIES_MAX):
            first = self._order.first
            if first is None or _range_of(first.due_ms) != range_ms or first.due_ms > until_ms:
                break
            if message_count >= STEP_MESSAGES_MAX or byte_count >= STEP_BYTES_MAX:
                break
            timer = self._index.take()
            if timer is None or timer.queue_offset in seen:
                continue
            seen.add(timer.queue_offset)
            one = self._examine(timer, now_ms)
            if one is not None:
                taken.append(one)
                message_count += one.draft is not None
                byte_count += one.byte_count
        return taken

    def _examine(self, timer: Timer, now_ms: int) -> _Taken | None:
        """Returns what a step does with the timer; None for a delete marker, which waits for the end of its slot."""
        entry = self._store.queue_entry(TIMER_TOPIC, 0, timer.queue_offset)
        message = self._store.message_at(entry[0]) if entry is not None else None
        if message is None:
            logger.error("timer %d cannot be delivered, its message is missing", timer.queue_offset)
            return _Taken(timer, None, 0)
        if not timer.is_message:
            self._markers.remember(timer, message)
            self._save_soon()
            return None
        if self._markers.recalls(timer, message):
            logger.debug("timer %d was recalled: %s", timer.queue_offset, message)
            return _Taken(timer, None, 0)
        draft = timer_copy(message, timer.queue_offset + 1, now_ms)
        if draft is None:
            logger.error("timer %d cannot be delivered, its message names no topic: %s", timer.queue_offset, message)
        return _Taken(timer, draft, message.total_bytes)

    def _append(self, taken: list[_Taken]) -> int:
        """Appends the copies and returns how many were stored."""
        drafts = [one.draft for one in taken if one.draft is not None]
        count = 0
        for draft, appended in append_copies(self._store, drafts, "timer"):
            self._done(source_offset(draft))
            count += appended is not None
        return count

    def _done(self, queue_offset: int) -> None:
        if self._delivered.add(queue_offset):
            self._waiting_count -= 1
            self._save_soon()

    def _end_slots(self) -> None:
        for queue_offset in self._markers.end_slots(self._clock(), self._order.first):
            self._done(queue_offset)

    # progress

    def _snapshot(self) -> TimerProgress:
        self._has_changed = False
        self._counted_to = self._store.max_commit_log_offset
        return TimerProgress(self._delivered.lowest, self._counted_to, self._delivered.as_bits())

    def _save_soon(self) -> None:
        self._has_changed = True
        if self._saving is None:
            self._saving = asyncio.get_running_loop().call_later(SAVE_INTERVAL_S, self._save)

    def _save(self) -> None:
        """Writes the snapshot of one interval ago, if the copies that it counts are flushed by now, in any flush mode;
        then takes the next one."""
        self._saving = None
        self._end_slots()
        unsaved = self._unsaved
        if unsaved is not None and unsaved.counted_to <= self._store.flushed_commit_log_offset:
            self._unsaved = None
            try:
                self._file.write(unsaved)
            except OSError as error:
                # Nothing is lost: the previous file still says from which offset on the log must be read for copies.
                logger.error("the progress of timers is not saved: %s", error)
        if self._unsaved is None and self._has_changed:
            self._unsaved = self._snapshot()
        if self._unsaved is not None or self._markers:
            self._saving = asyncio.get_running_loop().call_later(SAVE_INTERVAL_S, self._save)

    # recovery

    def _count_copies_from(self, commit_log_offset: int) -> None:
        """Counts the sources of the copies in the log from `commit_log_offset` on as delivered."""
        for copy in copies_from(self._store, commit_log_offset, TIMER_TOPIC, Property.TIMER_OUT_MS):
            source = source_offset(copy)
            if source not in self._delivered and is_copy_from(self._store, copy, TIMER_TOPIC, 0):
                self._delivered.add(source)


def _range_of(due_ms: int) -> int:
    return due_ms - due_ms % RANGE_MS
