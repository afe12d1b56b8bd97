"""Messages with a delivery time of their own: what waits in the timer topic, and bringing it to its real topic.

RocketMQ's `TimerMessageStore`. A message is stored in queue 0 of rmq_sys_wheel_timer; its consume-queue entry holds
the due time (`store/due_times.py`). Which falls due next tells `timer_runs.py`, which were delivered
`timer_progress.py`; both are derived from the log and can be made again.

Delivering appends a copy to REAL_TOPIC / REAL_QID, with TIMER_ENQUEUE_MS and TIMER_DEQUEUE_MS as Apache adds them. A
delete marker (TIMER_DEL_UNIQKEY: a unique key, or, as `appendTopicForTimerDeleteKey` has it, real topic + "+" + key)
takes the messages of its slot that have this key; it counts as delivered itself only when the whole slot has passed,
so that a kill in between forgets neither of the two.

Never early: a timer is due when the broker's clock says so, whatever a driver believes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from broker.engine.schedule.delay import STEP_BYTES_MAX, STEP_MESSAGES_MAX, Carried, delivered_copy
from broker.engine.schedule.timer_progress import Delivered, TimerProgress, TimerProgressFile
from broker.engine.schedule.timer_runs import PENDING_MAX, Run, RunDamaged, Timer, TimerOrder
from broker.engine.store.due_times import SLOT_MS, slot_of
from broker.engine.store.errors import RecordRefused
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Appended, MessageDraft
from remoting.wire.bodies.scheduler import AgendaEntry
from remoting.wire.limits import PROPERTIES_BYTES_MAX
from remoting.wire.names import TIMER_TOPIC
from remoting.wire.properties import Property, encode_properties
from remoting.wire.stored_message import StoredMessage

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
# What a copy has beyond its source (`TimerMessageStore.convert`).
_ADDED = (Property.TIMER_ENQUEUE_MS, Property.TIMER_DEQUEUE_MS)
_ADDED_BYTES_MAX = 128


class _Taken(NamedTuple):
    """One entry of a step; `draft` is None for what is delivered by being left out."""

    timer: Timer
    draft: MessageDraft | None
    byte_count: int


class TimerDelivery:
    """Carrier of the kind "timer"; a key is the first millisecond of a minute.

    Callers: the runtime (`recover`, `stop`), the store's listener (`appended`) and its retention (`pinned`), the
    scheduler (`agenda`, `next_due_ms`, `carry_out`). All on the event loop.
    """

    def __init__(
        self, store: MessageStore, folder: Path, on_sooner: Callable[[], None], clock: Callable[[], int]
    ) -> None:
        """`folder` is the store's; `on_sooner`: something falls due before all that waited. `clock`: ms."""
        self._store = store
        self._on_sooner = on_sooner
        self._clock = clock
        self._order = TimerOrder(folder / FOLDER_NAME)
        self._file = TimerProgressFile(folder / FOLDER_NAME)
        self._delivered = Delivered()
        self._waiting_count = 0
        # The delete markers of slots that are not over: slot to key to the marker's queue offset.
        self._markers: dict[int, dict[str, list[int]]] = {}
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
        self._take_up_order(high)
        self._counted_to = self._store.max_commit_log_offset
        if high:
            # The log's end may lie before what the file says: it must not be believed when the log has grown again.
            self._write(self._snapshot())

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
            self._write(snapshot)

    # what the scheduler asks

    def agenda(self) -> list[AgendaEntry]:
        first = self._first()
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
        first = self._first()
        return None if first is None else first.due_ms

    @property
    def waiting_count(self) -> int:
        """Delete markers whose slot is not over count too."""
        return self._waiting_count

    def carry_out(self, key: str, until_ms: int) -> Carried:
        """Delivers what falls due in the minute `key` up to `until_ms`, and no later than now.

        Raises KeyError for a key that is no minute, StoreError.
        """
        if not key.isdecimal() or int(key) % RANGE_MS:
            raise KeyError(key)
        now_ms = self._clock()
        taken = self._collect(int(key), min(until_ms, now_ms), now_ms)
        try:
            appended = self._append([one for one in taken if one.draft is not None])
        except Exception:
            self._order.put_back(one.timer for one in taken if one.timer.queue_offset not in self._delivered)
            raise
        for one in taken:
            self._done(one.timer)
        self._end_slots()
        if not appended:
            return Carried(0, -1)
        self._late_ms = max(0, now_ms - min(one.timer.due_ms for one in taken if one.draft is not None))
        return Carried(appended, self._late_ms)

    # what the store reports and asks

    def appended(self, appended: Appended) -> None:
        """A message was stored, in whatever topic."""
        if appended.topic == TIMER_TOPIC and appended.queue_id == 0:
            first = self._first()
            timer = _timer(appended.tags_code, appended.queue_offset)
            self._order.add(timer)
            self._waiting_count += 1
            if first is None or timer < first:
                self._on_sooner()
        elif appended.commit_log_offset - self._counted_to > SAVE_INTERVAL_BYTES and self._waiting_count:
            self._counted_to = appended.commit_log_offset
            self._save_soon()

    def pinned(self) -> int | None:
        """The commit-log offset of the oldest message that waits."""
        entry = self._entry_from(self._delivered.lowest)
        return None if entry is None else entry[0]

    # delivering

    def _first(self) -> Timer | None:
        return self._order.first

    def _collect(self, range_ms: int, until_ms: int, now_ms: int) -> list[_Taken]:
        """What is due, in order, at most one step's worth. Delete markers stay, and are remembered."""
        taken: list[_Taken] = []
        seen: set[int] = set()
        message_count = byte_count = 0
        for _ in range(STEP_ENTRIES_MAX):
            first = self._first()
            if first is None or _range_of(first.due_ms) != range_ms or first.due_ms > until_ms:
                break
            if message_count >= STEP_MESSAGES_MAX or byte_count >= STEP_BYTES_MAX:
                break
            timer = self._take()
            if timer is None or timer.queue_offset in self._delivered or timer.queue_offset in seen:
                continue
            if not self._is_still(timer):
                continue
            seen.add(timer.queue_offset)
            one = self._look(timer, now_ms)
            if one is not None:
                taken.append(one)
                message_count += one.draft is not None
                byte_count += one.byte_count
        return taken

    def _take(self) -> Timer | None:
        try:
            return self._order.take()
        except RunDamaged as damage:
            self._mend(damage)
            return None

    def _is_still(self, timer: Timer) -> bool:
        """Whether the queue says the same; else its word counts."""
        entry = self._store.queue_entry(TIMER_TOPIC, 0, timer.queue_offset)
        if entry is None or _timer(entry[2], timer.queue_offset) == timer:
            return True
        self._order.put_back([_timer(entry[2], timer.queue_offset)])
        return False

    def _look(self, timer: Timer, now_ms: int) -> _Taken | None:
        """What is to be done with it; None for a delete marker, which waits for the end of its slot."""
        entry = self._store.queue_entry(TIMER_TOPIC, 0, timer.queue_offset)
        message = self._store.message_at(entry[0]) if entry is not None else None
        if message is None:
            logger.error("timer %d cannot be delivered, its message is gone", timer.queue_offset)
            return _Taken(timer, None, 0)
        if not timer.is_message:
            self._remember(timer, message.properties.get(Property.TIMER_DEL_UNIQKEY, ""))
            return None
        if self._is_recalled(timer, message):
            logger.debug("timer %d was recalled: %s", timer.queue_offset, message)
            return _Taken(timer, None, 0)
        draft = timer_copy(message, timer.queue_offset + 1, now_ms)
        if draft is None:
            logger.error("timer %d cannot be delivered, its message names no topic: %s", timer.queue_offset, message)
        return _Taken(timer, draft, message.total_bytes)

    def _append(self, batch: list[_Taken]) -> int:
        """How many were stored. What can never be is left out, so that it does not hold up all that waits behind it."""
        if not batch:
            return 0
        try:
            appended = self._store.append_batch([one.draft for one in batch if one.draft is not None])
        except RecordRefused as error:
            if len(batch) > 1:
                return sum(self._append([one]) for one in batch)
            logger.error("timer %d cannot be delivered: %s", batch[0].timer.queue_offset, error)
            appended = []
        for one in batch:
            self._done(one.timer)
        return len(appended)

    def _done(self, timer: Timer) -> None:
        if self._delivered.add(timer.queue_offset):
            self._waiting_count -= 1
            self._save_soon()

    # delete markers

    def _remember(self, timer: Timer, key: str) -> None:
        self._markers.setdefault(slot_of(timer.due_ms), {}).setdefault(key, []).append(timer.queue_offset)
        self._save_soon()

    def _is_recalled(self, timer: Timer, message: StoredMessage) -> bool:
        keys = self._markers.get(slot_of(timer.due_ms))
        if keys is None or message.unique_key is None:
            return False
        return (
            message.unique_key in keys or f"{message.properties.get(Property.REAL_TOPIC)}+{message.unique_key}" in keys
        )

    def _end_slots(self) -> None:
        """Markers of slots that are over have done their work."""
        if not self._markers:
            return
        first, now_ms = self._first(), self._clock()
        for slot in [slot for slot in self._markers if slot + SLOT_MS < now_ms]:
            if first is not None and slot_of(first.due_ms) <= slot:
                continue
            for queue_offsets in self._markers.pop(slot).values():
                for queue_offset in queue_offsets:
                    self._done(Timer(slot + 1, is_message=False, queue_offset=queue_offset))

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
                self._write(unsaved)
            except OSError as error:
                # The file before still says from where the log tells the rest.
                logger.error("the progress of timers is not saved: %s", error)
        if self._unsaved is None and self._has_news:
            self._unsaved = self._snapshot()
        if self._unsaved is not None or self._markers:
            self._saving = asyncio.get_running_loop().call_later(SAVE_INTERVAL_S, self._save)

    def _write(self, progress: TimerProgress) -> None:
        self._file.write(progress)

    # making the order again

    def _take_up_order(self, high: int) -> None:
        position = self._delivered.lowest
        for run in self._order.open_runs(position, high):
            self._index(position, run.first)
            if not self._take_up(run):
                logger.warning("%s is not used: timers that wait are not in it", run.path)
                self._index(max(position, run.first), run.end)
            position = max(position, run.end)
        self._index(position, high)

    def _take_up(self, run: Run) -> bool:
        """Whether it has all that waits: a power cut brings back what it took the copy of."""
        try:
            waiting_count = sum(queue_offset not in self._delivered for queue_offset in run.queue_offsets())
            if waiting_count == self._delivered.missing(run.first, run.end):
                self._order.add_run(run)
                return True
        except RunDamaged as damage:
            logger.error("%s", damage)
        self._order.drop(run.path)
        return False

    def _mend(self, damage: RunDamaged) -> None:
        logger.error("timers from %d on are indexed again: %s", damage.first, damage)
        self._order.drop(damage.path)
        self._index(max(damage.first, self._delivered.lowest), damage.end)

    def _index(self, first: int, end: int) -> None:
        """Timers `first` to `end` of the queue into the order, those that wait."""
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
                yield _timer(entry[2] if entry is not None else 0, queue_offset)

    def _entry_from(self, queue_offset: int) -> tuple[int, int, int] | None:
        """The first entry at or behind `queue_offset` that is no hole."""
        for place in range(queue_offset, self._store.max_offset(TIMER_TOPIC, 0)):
            entry = self._store.queue_entry(TIMER_TOPIC, 0, place)
            if entry is not None:
                return entry
        return None

    def _count_copies_from(self, commit_log_offset: int) -> None:
        if commit_log_offset >= self._store.max_commit_log_offset:
            return
        for record in self._store.records_from(commit_log_offset):
            source = record.prepared_transaction_offset - 1
            if source < 0 or source in self._delivered or Property.TIMER_OUT_MS not in record.properties_text:
                continue
            copy = self._store.message_at(record.commit_log_offset)
            if copy is not None and self._is_copy(copy, source):
                self._delivered.add(source)

    def _is_copy(self, copy: StoredMessage, queue_offset: int) -> bool:
        """Believes nobody who only looks like a copy: counting one too many would lose what waits."""
        entry = self._store.queue_entry(TIMER_TOPIC, 0, queue_offset)
        source = self._store.message_at(entry[0]) if entry is not None else None
        return (
            source is not None
            and source.body == copy.body
            and source.properties.get(Property.REAL_TOPIC) == copy.topic
            and _without_added(source) == _without_added(copy)
        )


def timer_copy(message: StoredMessage, next_queue_offset: int, now_ms: int) -> MessageDraft | None:
    """The message for its real topic; None when its properties name none. `next_queue_offset`: after its source."""
    draft = delivered_copy(message, next_queue_offset)
    if draft is None:
        return None
    properties = dict(message.properties)
    if len(message.properties_text.encode("utf-8", "replace")) + _ADDED_BYTES_MAX <= PROPERTIES_BYTES_MAX:
        properties[Property.TIMER_ENQUEUE_MS] = str(message.store_timestamp_ms // SLOT_MS * SLOT_MS)
        properties[Property.TIMER_DEQUEUE_MS] = str(now_ms)
    draft.properties_text = encode_properties(properties)
    return draft


def _timer(tags_code: int, queue_offset: int) -> Timer:
    return Timer(abs(tags_code), tags_code >= 0, queue_offset)


def _range_of(due_ms: int) -> int:
    return due_ms - due_ms % RANGE_MS


def _without_added(message: StoredMessage) -> dict[str, str]:
    return {name: value for name, value in message.properties.items() if name not in _ADDED}
