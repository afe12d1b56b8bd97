"""Delayed messages: how they wait in the schedule topic, and their delivery to their real topics when due.

RocketMQ's `ScheduleMessageService`. A delayed message is stored in queue level - 1 of SCHEDULE_TOPIC_XXXX; its
consume-queue entry holds the due time where other entries hold a tag hash. Within a level all messages wait equally
long, so the entries are in the order of their due times and only the first one must be examined.

When the table of levels changes, a level's queue continues in a new segment, so that a message with a delay of 1 s is
not behind one with a delay of 2 h. Waiting messages keep their due times, even when the new table no longer has their
level. Segments end where `level_history.py` says that the table changed.

Copies (`copies.py`) of one segment are appended in order, at most `STEP_MESSAGES_MAX` a step. `progress.py` documents
how progress survives a kill; `delay_saving.py` writes it and `level_recovery.py` reads it.

No message is delivered early: an entry is due by the broker's own clock, whatever time a driver sends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from broker.engine.schedule.copies import STEP_BYTES_MAX, STEP_MESSAGES_MAX, append_copies, delivered_copy
from broker.engine.schedule.delay_saving import DelaySaving, Tables
from broker.engine.schedule.due_tasks import StepResult
from broker.engine.schedule.level_history import LevelHistory
from broker.engine.schedule.level_queues import LevelQueues
from broker.engine.schedule.level_recovery import recover_levels
from broker.engine.schedule.level_segments import Level, LevelSegment, delay_of, drop_delivered
from broker.engine.schedule.progress import DelayProgress, ProgressFile, encode_progress
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Appended, MessageDraft
from remoting.wire.bodies.scheduler import AgendaEntry
from remoting.wire.names import SCHEDULE_TOPIC

logger = logging.getLogger(__name__)

KIND = "delay"


class DelayedDelivery:
    """DueTaskHandler of the kind "delay"; a key is a level's number.

    Callers: the runtime (`recover`, `stop`), the store's listener (`appended`) and its retention (`pinned`), the
    scheduler (`agenda`, `next_due_ms`, `carry_out`). All on the event loop.
    """

    def __init__(
        self,
        store: MessageStore,
        levels: LevelHistory,
        file: ProgressFile,
        on_earlier_due: Callable[[], None],
        clock: Callable[[], int],
    ) -> None:
        """`on_earlier_due` is called when the next due time may have become earlier: an empty level got a message, or
        the table of levels changed. `clock`: ms since the epoch."""
        self._store = store
        self._on_earlier_due = on_earlier_due
        self._clock = clock
        self._history = levels
        self._queues = LevelQueues(store)
        self._levels = {
            str(number): Level(number, [LevelSegment(delay_ms)])
            for number, delay_ms in enumerate(levels.current.delays_ms, start=1)
        }
        self.saving = DelaySaving(store, file, self._tables, clock)

    # start and stop

    def recover(self) -> None:
        """Reads the progress file, then counts the copies in the log that it does not count yet.

        Call it once, before anything is delivered.
        """
        self._levels = recover_levels(self._store, self._queues, self._history, self.saving.read())
        self.saving.recovered()

    def levels_changed(self) -> None:
        """Applies the current table of levels to messages stored from now on; waiting ones keep their due times."""
        delays_ms = self._history.current.delays_ms
        for number in range(1, len(delays_ms) + 1):
            self._levels.setdefault(str(number), Level(number, [LevelSegment(delays_ms[number - 1])]))
        for level in self._levels.values():
            self._queues.begin_segment(level, delay_of(level.number, delays_ms))
        self._on_earlier_due()

    async def stop(self) -> None:
        """Saves the progress, once the last copies are flushed."""
        await self.saving.stop()

    # for retention

    def pinned(self) -> int | None:
        """Returns the commit-log offset from which on the log is needed: that of the oldest waiting message, or the one
        from which on recovery would count copies, if that is lower. None when neither exists."""
        offsets = [self._queues.lowest_commit_log_offset(level) for level in self._levels.values()]
        offsets.append(self.saving.saved.delivering_from)
        return min((offset for offset in offsets if offset is not None), default=None)

    # for the scheduler

    def agenda(self) -> list[AgendaEntry]:
        now_ms = self._clock()
        return [
            AgendaEntry(
                kind=KIND,
                key=key,
                next_due_ms=due_ms,
                waiting_count=self._queues.waiting_count(level),
                late_ms=level.late_ms,
            )
            for key, level in self._levels.items()
            if (due_ms := level.next_due_ms(now_ms)) is not None
        ]

    def encoded_progress(self) -> bytes:
        """Returns the body of GET_ALL_DELAY_OFFSET (45), in the file's format: level to the queue offset of its next
        entry."""
        saved = self.saving.saved
        return encode_progress(
            DelayProgress(self._tables().next_offsets, counter=saved.counter, changed_ms=saved.changed_ms)
        )

    @property
    def next_offsets(self) -> Mapping[int, int]:
        """Returns the queue offset of each level's next entry."""
        return self._tables().next_offsets

    @property
    def next_due_ms(self) -> int | None:
        now_ms = self._clock()
        dues = [level.next_due_ms(now_ms) for level in self._levels.values()]
        return min((due_ms for due_ms in dues if due_ms is not None), default=None)

    @property
    def waiting_count(self) -> int:
        return sum(self._queues.waiting_count(level) for level in self._levels.values())

    def carry_out(self, key: str, until_ms: int) -> StepResult:
        """Delivers messages of level `key` that are due by `until_ms` and by now. Raises KeyError, StoreError."""
        level = self._levels[key]
        now_ms = self._clock()
        until_ms = min(until_ms, now_ms)
        first = level.first_segment(now_ms)
        if first is None or first[0] > until_ms:
            return StepResult(0, -1)
        first_due_ms, segment = first
        drafts, next_offset = self._collect(level, segment, until_ms, now_ms)
        count = self._append(level, segment, drafts) if drafts else 0
        if count:
            level.late_ms = now_ms - first_due_ms
        segment.next_offset = next_offset
        self._queues.advance(level, segment)
        level.segments = drop_delivered(level.segments)
        return StepResult(count, level.late_ms if count else -1)

    # for the store

    def appended(self, appended: list[Appended]) -> None:
        """Takes note of levels that were empty and have a message among those just stored, of whatever topic."""
        for one in appended:
            if one.topic == SCHEDULE_TOPIC:
                self._level_grew(one.queue_id + 1)

    def _level_grew(self, number: int) -> None:
        level = self._levels.get(str(number))
        if level is not None and level.segments[-1].stored_due_ms is None:
            self._queues.advance(level, level.segments[-1])
            self._on_earlier_due()

    # delivering

    def _collect(
        self, level: Level, segment: LevelSegment, until_ms: int, now_ms: int
    ) -> tuple[list[MessageDraft], int]:
        """Returns copies of the due messages, in order, and the queue offset after the last entry examined."""
        drafts: list[MessageDraft] = []
        total_bytes = 0
        queue_offset = segment.next_offset
        while len(drafts) < STEP_MESSAGES_MAX and total_bytes < STEP_BYTES_MAX:
            queue_offset, entry = self._queues.entry_from(level, segment, queue_offset)
            if entry is None or segment.due_ms(entry[2], now_ms) > until_ms:
                break
            message = self._store.message_at(entry[0])
            queue_offset += 1
            draft = delivered_copy(message, queue_offset) if message is not None else None
            if draft is None:
                logger.error(
                    "delay level %d: entry %d cannot be delivered, its message is %s",
                    *(level.number, queue_offset - 1, "missing" if message is None else "not a delayed message"),
                )
                continue
            drafts.append(draft)
            total_bytes += entry[1]
        return drafts, queue_offset

    def _append(self, level: Level, segment: LevelSegment, drafts: list[MessageDraft]) -> int:
        """Appends the copies and returns how many were stored.

        A stored one counts as delivered at once, even where the disk is full for the next one.
        """
        self.saving.begin()
        count = 0
        for draft, appended in append_copies(self._store, drafts, f"delay level {level.number}: entry"):
            segment.next_offset = draft.prepared_transaction_offset
            if appended is not None:
                self.saving.copied(appended.commit_log_offset + appended.total_bytes)
                count += 1
        return count

    # progress

    def _tables(self) -> Tables:
        levels = self._levels.values()
        return Tables(
            {level.number: level.next_offset for level in levels if level.next_offset > 0},
            {
                level.number: {segment.start: segment.next_offset for segment in level.segments[1:]}
                for level in levels
                if len(level.segments) > 1
            },
        )
