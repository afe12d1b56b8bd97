"""The queues of the delay levels in the schedule topic, read through their lanes.

Queue `level - 1` of SCHEDULE_TOPIC_XXXX; the consume-queue entry holds the due time where others hold a tag hash.
"""

from __future__ import annotations

import logging

from broker.engine.schedule.lanes import Lane, Level, without_done
from broker.engine.store.message_store import MessageStore
from remoting.wire.names import SCHEDULE_TOPIC

logger = logging.getLogger(__name__)

# Commit-log offset, size in bytes, due time in ms.
Entry = tuple[int, int, int]


class LevelQueues:
    def __init__(self, store: MessageStore) -> None:
        self._store = store

    def look(self, level: Level, lane: Lane) -> None:
        """Notes what waits first in the lane."""
        lane.next_offset, entry = self.entry_from(level, lane, lane.next_offset)
        lane.stored_due_ms = None if entry is None else entry[2]

    def look_at_all(self, level: Level) -> None:
        for lane in level.lanes:
            self.look(level, lane)
        level.lanes = without_done(level.lanes)

    def entry_from(self, level: Level, lane: Lane, queue_offset: int) -> tuple[int, Entry | None]:
        """(queue offset, entry) of the lane's first at or behind `queue_offset`; what was damaged is stepped over."""
        first = queue_offset
        end = self.end_of(level, lane)
        entry = None
        while queue_offset < end:
            entry = self._store.queue_entry(SCHEDULE_TOPIC, level.queue_id, queue_offset)
            if entry is not None:
                break
            queue_offset += 1
        if queue_offset > first:
            logger.error("delay level %d: entries %d to %d are lost", level.number, first, queue_offset - 1)
        return queue_offset, entry

    def end_of(self, level: Level, lane: Lane) -> int:
        return self._store.max_offset(SCHEDULE_TOPIC, level.queue_id) if lane.end is None else lane.end

    def waiting_count(self, level: Level) -> int:
        return sum(max(0, self.end_of(level, lane) - lane.next_offset) for lane in level.lanes)

    def first_place(self, level: Level) -> int | None:
        """The commit-log offset of the oldest message that waits in any lane."""
        entries = [
            self._store.queue_entry(SCHEDULE_TOPIC, level.queue_id, lane.next_offset)
            for lane in level.lanes
            if lane.stored_due_ms is not None
        ]
        return min((entry[0] for entry in entries if entry is not None), default=None)

    def begin_lane(self, level: Level, delay_ms: int) -> None:
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
