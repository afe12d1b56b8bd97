"""Messages with a delivery time of their own: what waits in the timer topic, and bringing it to its real topic.

RocketMQ's `TimerMessageStore`. A message is stored in queue 0 of rmq_sys_wheel_timer; its consume-queue entry holds
the due time (`store/due_times.py`). Which falls due next tells `timer_runs.py`, which were delivered
`timer_progress.py`; both are derived from the log and can be made again (`timer_index.py`).

Delivering appends a copy (`copies.py`), or leaves the message out that a delete marker of its slot names
(`delete_markers.py`). The marker counts as delivered itself only when the whole slot has passed, so that a kill in
between forgets neither of the two.

Never early: a timer is due when the broker's clock says so, whatever a driver believes.
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
# A step's key names the minute in which the first timer falls due, by its first millisecond.
RANGE_MS = 60_000
# Entries looked at in one step: those of recalled messages, and of ones delivered already, cost little.
STEP_ENTRIES_MAX = 1_024
# How long the file may lag behind the log, in time while timers are delivered and in bytes of other messages: so much
# is read over after a kill.
SAVE_INTERVAL_S = 1.0
SAVE_INTERVAL_BYTES = 16 * 1024 * 1024


class _Taken(NamedTuple):
    """One entry of a step; `draft` is None for what is delivered by being left out."""

    timer: Timer
    draft: MessageDraft | None
    byte_count: int


class TimerDelivery:
    """DueTaskHandler of the kind "timer"; a key is the first millisecond of a minute.

    Callers: the runtime (`recover`, `stop`), the store's listener (`appended`) and its retention (`pinned`), the
    scheduler (`agenda`, `next_due_ms`, `carry_out`). All on the event loop.
    """

    def __init__(
        self, store: MessageStore, folder: Path, on_earlier_due: Callable[[], None], clock: Callable[[], int]
    ) -> None:
        """`folder` is the store's; `on_earlier_due`: something falls due before all that waited. `clock`: ms."""
        self._store = store
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
        self._has_news = False
        self._saving: asyncio.TimerHandle | None = None

    # start and stop

    def recover(self) -> None:
        """From the file, what the log shows beyond it, and the runs that fit. Call it once, before the first append.

        Raises OSError.
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
            # The log's end may lie before what the file says: it must not be believed when the log has grown again.
            self._file.write(self._snapshot())

    async def stop(self) -> None:
        """Saves how far it came, as far as it is flushed."""
        if self._saving is not None:
            self._saving.cancel()
            self._saving = None
        if not self._has_news and self._unsaved is None:
            return
        snapshot = self._snapshot()
        flushed = asyncio.get_running_loop().create_future()
        self._store.when_flushed(snapshot.counted_to, flushed.set_result)
        if await flushed is None and self._store.flushed_commit_log_offset >= snapshot.counted_to:
            self._file.write(snapshot)

    # what the scheduler asks

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
        """Delete markers whose slot is not over count too."""
        return self._waiting_count

    def carry_out(self, key: str, until_ms: int) -> StepResult:
        """Delivers what falls due in the minute `key` up to `until_ms`, and no later than now.

        Raises KeyError for a key that is no minute, StoreError.
        """
        if not key.isdecimal() or int(key) % RANGE_MS:
            raise KeyError(key)
        now_ms = self._clock()
        taken = self._collect(int(key), min(until_ms, now_ms), now_ms)
        try:
            appended_count = self._append(taken)
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

    # what the store reports and asks

    def appended(self, appended: list[Appended]) -> None:
        """Takes up the timers among the messages that were stored, in whatever topic."""
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
        """The commit-log offset of the oldest message that waits; an entry that is lost pins nothing."""
        for queue_offset in range(self._delivered.lowest, self._store.max_offset(TIMER_TOPIC, 0)):
            entry = self._store.queue_entry(TIMER_TOPIC, 0, queue_offset)
            if entry is not None:
                return entry[0]
        return None

    # delivering

    def _collect(self, range_ms: int, until_ms: int, now_ms: int) -> list[_Taken]:
        """What is due, in order, at most one step's worth. Delete markers stay, and are remembered."""
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
            one = self._look(timer, now_ms)
            if one is not None:
                taken.append(one)
                message_count += one.draft is not None
                byte_count += one.byte_count
        return taken

    def _look(self, timer: Timer, now_ms: int) -> _Taken | None:
        """What is to be done with it; None for a delete marker, which waits for the end of its slot."""
        entry = self._store.queue_entry(TIMER_TOPIC, 0, timer.queue_offset)
        message = self._store.message_at(entry[0]) if entry is not None else None
        if message is None:
            logger.error("timer %d cannot be delivered, its message is gone", timer.queue_offset)
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
        """How many were stored."""
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
        self._has_news = False
        self._counted_to = self._store.max_commit_log_offset
        return TimerProgress(self._delivered.lowest, self._counted_to, self._delivered.as_bits())

    def _save_soon(self) -> None:
        self._has_news = True
        if self._saving is None:
            self._saving = asyncio.get_running_loop().call_later(SAVE_INTERVAL_S, self._save)

    def _save(self) -> None:
        """Writes what was counted a round ago, when the copies are on the disk by now, whatever the flush mode."""
        self._saving = None
        self._end_slots()
        unsaved = self._unsaved
        if unsaved is not None and unsaved.counted_to <= self._store.flushed_commit_log_offset:
            self._unsaved = None
            try:
                self._file.write(unsaved)
            except OSError as error:
                # The file before still says from where the log tells the rest.
                logger.error("the progress of timers is not saved: %s", error)
        if self._unsaved is None and self._has_news:
            self._unsaved = self._snapshot()
        if self._unsaved is not None or self._markers:
            self._saving = asyncio.get_running_loop().call_later(SAVE_INTERVAL_S, self._save)

    # recovery

    def _count_copies_from(self, commit_log_offset: int) -> None:
        for copy in copies_from(self._store, commit_log_offset, TIMER_TOPIC, Property.TIMER_OUT_MS):
            source = source_offset(copy)
            if source not in self._delivered and is_copy_from(self._store, copy, TIMER_TOPIC, 0):
                self._delivered.add(source)


def _range_of(due_ms: int) -> int:
    return due_ms - due_ms % RANGE_MS
