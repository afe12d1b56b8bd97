"""Delayed messages: what waits in the schedule topic, and bringing it to its real topic when due.

RocketMQ's `ScheduleMessageService`. A delayed message is stored in queue
level - 1 of SCHEDULE_TOPIC_XXXX; its consume-queue entry holds the due time where others hold a tag hash. Within a
level all wait equally long, so the entries are in order of their due times and only the first needs a look.

Unless the table of levels changed meanwhile: from there on a level's queue goes on in a new lane, so that what waits
for 1 s now is not behind what was promised 2 h. What waits keeps its due time, also when its level is gone. Lanes end
where `level_history.py` says that the table changed.

Delivering appends a copy to REAL_TOPIC / REAL_QID: same body, flags, times and properties, with a fresh tag hash.
Copies of one level are appended in order, at most `STEP_MESSAGES_MAX` a step, so that senders are not held up for
long. How progress survives a kill is told in `progress.py`.

Never early: an entry is due when the broker's clock says so, whatever a driver believes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from broker.engine.schedule.lanes import Lane, Level, delay_of, split_at, without_done
from broker.engine.schedule.level_history import LevelHistory
from broker.engine.schedule.progress import DelayProgress, ProgressFile, encode_progress
from broker.engine.store.errors import RecordRefused, StoreFull
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Appended, MessageDraft
from remoting.wire.bodies.scheduler import AgendaEntry
from remoting.wire.names import SCHEDULE_TOPIC
from remoting.wire.properties import Property
from remoting.wire.stored_message import StoredMessage
from remoting.wire.tags import tags_code

logger = logging.getLogger(__name__)

KIND = "delay"
# One step: about 10 ms of appending, or 4 MiB of bodies.
STEP_MESSAGES_MAX = 256
STEP_BYTES_MAX = 4 * 1024 * 1024
# How long the file may lag behind the log (which is read over from there on after a kill).
SAVE_INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class Carried:
    """What one step did; `late_ms` of the latest, -1 when nothing was delivered."""

    count: int
    late_ms: int


class DelayedDelivery:
    """Carrier of the kind "delay"; a key is a level's number.

    Callers: the runtime (`recover`, `stop`), the store's listener (`appended`), the scheduler (`agenda`,
    `next_due_ms`, `carry_out`). All on the event loop.
    """

    def __init__(
        self,
        store: MessageStore,
        levels: LevelHistory,
        file: ProgressFile,
        on_sooner: Callable[[], None],
        clock: Callable[[], int],
    ) -> None:
        """`on_sooner`: something waits in a level that was empty. `clock`: ms since the epoch."""
        self._store = store
        self._file = file
        self._on_sooner = on_sooner
        self._clock = clock
        self._history = levels
        self._levels = {
            str(number): Level(number, [Lane(delay_ms)])
            for number, delay_ms in enumerate(levels.current.delays_ms, start=1)
        }
        self._progress = DelayProgress({})
        self._copied_end = 0
        self._saving: asyncio.TimerHandle | None = None

    # start and stop

    def recover(self) -> None:
        """Reads the file, then what the log shows beyond it. Call it once, before anything is delivered."""
        saved = self._file.read()
        self._progress = saved if saved is not None else DelayProgress({}, delivering_from=0)
        numbers = {queue_id + 1 for queue_id in self._store.queues(SCHEDULE_TOPIC)}
        for number in sorted(numbers | {level.number for level in self._levels.values()}):
            self._levels[str(number)] = Level(number, self._lanes_of(number))
        if self._progress.delivering_from is not None and self._has_waiting():
            self._count_copies_from(self._progress.delivering_from)
        self._progress.delivering_from = None
        for level in self._levels.values():
            self._clamp(level)
            self._look_at_all(level)
        if (self._table(), self._lanes_table()) != (self._progress.next_offsets, self._progress.lanes):
            self._write(None)

    def levels_changed(self) -> None:
        """Another table counts for what is stored from now on; what waits keeps its due time."""
        delays_ms = self._history.current.delays_ms
        for number in range(1, len(delays_ms) + 1):
            self._levels.setdefault(str(number), Level(number, [Lane(delays_ms[number - 1])]))
        for level in self._levels.values():
            self._begin_lane(level, delay_of(level.number, delays_ms))
        self._on_sooner()

    async def stop(self) -> None:
        """Saves how far it came, once the last copies are flushed."""
        if self._saving is None:
            return
        self._saving.cancel()
        self._saving = None
        flushed = asyncio.get_running_loop().create_future()
        self._store.when_flushed(self._copied_end, flushed.set_result)
        if await flushed is None:
            self._write(None)

    # what retention asks

    def pinned(self) -> int | None:
        """The commit-log offset of the oldest message that waits, or from which on copies are counted after a kill."""
        entries = [
            self._store.queue_entry(SCHEDULE_TOPIC, level.queue_id, lane.next_offset)
            for level in self._levels.values()
            for lane in level.lanes
            if lane.stored_due_ms is not None
        ]
        offsets = [entry[0] for entry in entries if entry is not None]
        if self._progress.delivering_from is not None:
            offsets.append(self._progress.delivering_from)
        return min(offsets, default=None)

    # what the scheduler asks

    def agenda(self) -> list[AgendaEntry]:
        now_ms = self._clock()
        return [
            AgendaEntry(
                kind=KIND,
                key=key,
                next_due_ms=due_ms,
                waiting_count=self._waiting_count(level),
                late_ms=level.late_ms,
            )
            for key, level in self._levels.items()
            if (due_ms := level.next_due_ms(now_ms)) is not None
        ]

    def encoded_progress(self) -> bytes:
        """45 GET_ALL_DELAY_OFFSET: level to the queue offset of the next entry, as the file has it."""
        counter, changed_ms = self._progress.counter, self._progress.changed_ms
        return encode_progress(DelayProgress(self._table(), counter=counter, changed_ms=changed_ms))

    @property
    def next_due_ms(self) -> int | None:
        now_ms = self._clock()
        dues = [level.next_due_ms(now_ms) for level in self._levels.values()]
        return min((due_ms for due_ms in dues if due_ms is not None), default=None)

    @property
    def waiting_count(self) -> int:
        return sum(self._waiting_count(level) for level in self._levels.values())

    def carry_out(self, key: str, until_ms: int) -> Carried:
        """Delivers what level `key` has due up to `until_ms`, and no later than now. Raises KeyError, StoreError."""
        level = self._levels[key]
        now_ms = self._clock()
        until_ms = min(until_ms, now_ms)
        first = level.first_lane(now_ms)
        if first is None or first[0] > until_ms:
            return Carried(0, -1)
        first_due_ms, lane = first
        drafts, next_offset = self._collect(level, lane, until_ms, now_ms)
        appended: list[Appended] = []
        if drafts:
            self._begin_delivery()
            appended = self._append(level, drafts)
        if appended:
            self._copied_end = appended[-1].commit_log_offset + appended[-1].total_bytes
            level.late_ms = now_ms - first_due_ms
        lane.next_offset = next_offset
        self._look(level, lane)
        self._leave_done_lanes(level)
        return Carried(len(appended), level.late_ms if appended else -1)

    # what the store reports

    def appended(self, appended: Appended) -> None:
        """A message was stored, in whatever topic."""
        if appended.topic != SCHEDULE_TOPIC:
            return
        level = self._levels.get(str(appended.queue_id + 1))
        if level is not None and level.lanes[-1].stored_due_ms is None:
            self._look(level, level.lanes[-1])
            self._on_sooner()

    # delivering

    def _collect(self, level: Level, lane: Lane, until_ms: int, now_ms: int) -> tuple[list[MessageDraft], int]:
        """Copies of what is due, in order, and the queue offset after the last entry looked at."""
        drafts: list[MessageDraft] = []
        total_bytes = 0
        queue_offset = lane.next_offset
        while len(drafts) < STEP_MESSAGES_MAX and total_bytes < STEP_BYTES_MAX:
            queue_offset, entry = self._entry_from(level, lane, queue_offset)
            if entry is None or lane.due_ms(entry[2], now_ms) > until_ms:
                break
            message = self._store.message_at(entry[0])
            queue_offset += 1
            draft = delivered_copy(message, queue_offset) if message is not None else None
            if draft is None:
                logger.error(
                    "delay level %d: entry %d cannot be delivered, its message is %s",
                    *(level.number, queue_offset - 1, "gone" if message is None else "not a delayed one"),
                )
                continue
            drafts.append(draft)
            total_bytes += entry[1]
        return drafts, queue_offset

    def _append(self, level: Level, drafts: list[MessageDraft]) -> list[Appended]:
        """What can never be stored is left out, so that it does not hold up all that waits behind it."""
        try:
            return self._store.append_batch(drafts)
        except RecordRefused as error:
            if len(drafts) > 1:
                return [one for draft in drafts for one in self._append(level, [draft])]
            source = drafts[0].prepared_transaction_offset - 1
            logger.error("delay level %d: entry %d cannot be delivered: %s", level.number, source, error)
            return []

    def _look(self, level: Level, lane: Lane) -> None:
        lane.next_offset, entry = self._entry_from(level, lane, lane.next_offset)
        lane.stored_due_ms = None if entry is None else entry[2]

    def _look_at_all(self, level: Level) -> None:
        for lane in level.lanes:
            self._look(level, lane)
        self._leave_done_lanes(level)

    def _entry_from(self, level: Level, lane: Lane, queue_offset: int) -> tuple[int, tuple[int, int, int] | None]:
        """(queue offset, entry) of the lane's first at or behind `queue_offset`; what was damaged is stepped over."""
        first = queue_offset
        end = self._end_of(level, lane)
        entry = None
        while queue_offset < end:
            entry = self._store.queue_entry(SCHEDULE_TOPIC, level.queue_id, queue_offset)
            if entry is not None:
                break
            queue_offset += 1
        if queue_offset > first:
            logger.error("delay level %d: entries %d to %d are lost", level.number, first, queue_offset - 1)
        return queue_offset, entry

    def _end_of(self, level: Level, lane: Lane) -> int:
        return self._store.max_offset(SCHEDULE_TOPIC, level.queue_id) if lane.end is None else lane.end

    def _waiting_count(self, level: Level) -> int:
        return sum(max(0, self._end_of(level, lane) - lane.next_offset) for lane in level.lanes)

    # lanes

    def _begin_lane(self, level: Level, delay_ms: int) -> None:
        """Goes on in a new lane, where one is needed; an empty one takes the new delay itself."""
        last = level.lanes[-1]
        if last.delay_ms == delay_ms:
            return
        end = self._store.max_offset(SCHEDULE_TOPIC, level.queue_id)
        if last.next_offset >= end:
            last.delay_ms = delay_ms
            return
        last.end = end
        level.lanes.append(Lane(delay_ms, start=end, next_offset=end))

    def _leave_done_lanes(self, level: Level) -> None:
        level.lanes = without_done(level.lanes)

    def _lanes_of(self, number: int) -> list[Lane]:
        """As the history of the table tells them, and where the progress that was saved says that they are."""
        lanes: list[Lane] = []
        for since, table in self._history.changes:
            delay_ms = delay_of(number, table.delays_ms)
            start = self._first_behind(number - 1, since) if lanes else 0
            if lanes and (lanes[-1].delay_ms == delay_ms or lanes[-1].start == start):
                lanes[-1].delay_ms = delay_ms
                continue
            if lanes:
                lanes[-1].end = start
            lanes.append(Lane(delay_ms, start=start))
        lowest = self._progress.next_offsets.get(number, 0)
        saved = self._progress.lanes.get(number, {})
        # Of tables that retention let go of, the progress alone remembers where lanes began.
        high = self._store.max_offset(SCHEDULE_TOPIC, number - 1)
        lanes = split_at(lanes, [start for start in saved if start <= high])
        for lane in lanes:
            # A lane that was empty took over the delay of the next table, and goes on under the start that it had.
            before = (offset for start, offset in saved.items() if start <= lane.start)
            lane.next_offset = max(lane.start, lowest, *before)
            if lane.end is not None:
                lane.next_offset = min(lane.next_offset, lane.end)
        return without_done(lanes)

    def _first_behind(self, queue_id: int, commit_log_offset: int) -> int:
        """The queue offset of the first entry that was stored at or behind `commit_log_offset`."""
        low = self._store.min_offset(SCHEDULE_TOPIC, queue_id)
        high = self._store.max_offset(SCHEDULE_TOPIC, queue_id)
        while low < high:
            middle = (low + high) // 2
            entry = self._store.queue_entry(SCHEDULE_TOPIC, queue_id, middle)
            if entry is not None and entry[0] < commit_log_offset:
                low = middle + 1
            else:
                high = middle
        return low

    # progress

    def _table(self) -> dict[int, int]:
        return {level.number: level.next_offset for level in self._levels.values() if level.next_offset > 0}

    def _lanes_table(self) -> dict[int, dict[int, int]]:
        return {
            level.number: {lane.start: lane.next_offset for lane in level.lanes[1:]}
            for level in self._levels.values()
            if len(level.lanes) > 1
        }

    def _begin_delivery(self) -> None:
        """The file says that copies may follow, before the first one does. Raises StoreFull when it cannot."""
        if self._progress.delivering_from is None:
            try:
                self._write(self._store.max_commit_log_offset)
            except OSError as error:
                raise StoreFull(f"{self._file} cannot be written ({error.strerror}); free space") from error
        if self._saving is None:
            self._saving = asyncio.get_running_loop().call_later(SAVE_INTERVAL_S, self._save)

    def _save(self) -> None:
        """Counts the copies so far, once they are flushed."""
        self._saving = None
        end, tables = self._copied_end, (self._table(), self._lanes_table())

        def flushed(failure: Exception | None) -> None:
            if failure is not None:
                logger.error("the progress of delays is not saved: %s", failure)
                return
            is_complete = (self._table(), self._lanes_table()) == tables and self._copied_end == end
            try:
                self._write(None if is_complete else end, tables)
            except OSError as error:
                # The file still says where the log tells the rest.
                logger.error("the progress of delays is not saved: %s", error)

        self._store.when_flushed(end, flushed)

    def _write(
        self, delivering_from: int | None, tables: tuple[dict[int, int], dict[int, dict[int, int]]] | None = None
    ) -> None:
        """In the file first: what is only believed to stand there would be missed after a kill. Raises OSError."""
        table, lanes = tables or (self._table(), self._lanes_table())
        progress = DelayProgress(
            next_offsets=table,
            lanes=lanes,
            delivering_from=delivering_from,
            counter=self._progress.counter + 1,
            changed_ms=self._clock(),
        )
        self._file.write(progress)
        self._progress = progress

    # recovery

    def _has_waiting(self) -> bool:
        return any(self._waiting_count(level) for level in self._levels.values())

    def _count_copies_from(self, commit_log_offset: int) -> None:
        for record in self._store.records_from(commit_log_offset):
            if record.prepared_transaction_offset <= 0 or record.topic == SCHEDULE_TOPIC:
                continue
            copy = self._store.message_at(record.commit_log_offset)
            level = self._levels.get(str(delivered_from_level(copy))) if copy is not None else None
            lane = level.lane_of(record.prepared_transaction_offset - 1) if level is not None else None
            if copy is None or level is None or lane is None:
                continue
            if self._is_copy_of_source(copy, level):
                lane.next_offset = copy.prepared_transaction_offset

    def _is_copy_of_source(self, copy: StoredMessage, level: Level) -> bool:
        """Believes nobody who only looks like a copy: counting one too many would lose what waits."""
        entry = self._store.queue_entry(SCHEDULE_TOPIC, level.queue_id, copy.prepared_transaction_offset - 1)
        source = self._store.message_at(entry[0]) if entry is not None else None
        return source is not None and source.body == copy.body and source.properties == copy.properties

    def _clamp(self, level: Level) -> None:
        """A copied or rolled-back store may say more or less than its queue holds (apache/rocketmq issue 1472)."""
        low = self._store.min_offset(SCHEDULE_TOPIC, level.queue_id)
        high = self._store.max_offset(SCHEDULE_TOPIC, level.queue_id)
        for lane in level.lanes:
            offset = max(low, min(lane.next_offset, high))
            if offset != lane.next_offset:
                logger.warning(
                    "delay level %d: %s says next is %d, its queue holds %d to %d; going on at %d",
                    *(level.number, self._file, lane.next_offset, low, high, offset),
                )
                lane.next_offset = offset


def delivered_copy(message: StoredMessage, next_queue_offset: int) -> MessageDraft | None:
    """The message for its real topic; None when the properties don't name one. `next_queue_offset`: after its source.

    The properties stay as they are, DELAY included.
    """
    properties = message.properties
    topic, queue_id = properties.get(Property.REAL_TOPIC), properties.get(Property.REAL_QID, "")
    if topic is None or not queue_id.isdecimal():
        return None
    return MessageDraft(
        topic=topic,
        queue_id=int(queue_id),
        body=message.body,
        born_host=message.born_host,
        store_host=message.store_host,
        born_timestamp_ms=message.born_timestamp_ms,
        flag=message.flag,
        sys_flag=message.sys_flag,
        reconsume_times=message.reconsume_times,
        prepared_transaction_offset=next_queue_offset,
        properties_text=message.properties_text,
        tags_code=tags_code(message.tags),
    )


def delivered_from_level(message: StoredMessage) -> int:
    """Which level `message` claims to be a delivered copy of; 0 when it does not."""
    properties = message.properties
    level = properties.get(Property.DELAY, "")
    if properties.get(Property.REAL_TOPIC) != message.topic or not level.isdecimal():
        return 0
    return int(level)
