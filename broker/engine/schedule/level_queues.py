"""The queues of the delay levels in the schedule topic, and reading them by segments.

A level has queue `level - 1` of SCHEDULE_TOPIC_XXXX; its consume-queue entries hold the due time where other entries
hold a tag hash.
"""

from __future__ import annotations

import logging

from broker.engine.schedule.level_segments import Level, LevelSegment, drop_delivered
from broker.engine.store.message_store import MessageStore
from remoting.wire.names import SCHEDULE_TOPIC

logger = logging.getLogger(__name__)

# Commit-log offset, size in bytes, due time in ms.
Entry = tuple[int, int, int]


class LevelQueues:
    """Reads the levels' queues in the store, and sets in the segments which message is next."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store

    def advance(self, level: Level, segment: LevelSegment) -> None:
        """Sets the segment's next offset and due time to those of its first waiting message."""
        segment.next_offset, entry = self.entry_from(level, segment, segment.next_offset)
        segment.stored_due_ms = None if entry is None else entry[2]

    def advance_all(self, level: Level) -> None:
        """Advances all segments of the level, and drops the first ones that are fully delivered."""
        for segment in level.segments:
            self.advance(level, segment)
        level.segments = drop_delivered(level.segments)

    def entry_from(self, level: Level, segment: LevelSegment, queue_offset: int) -> tuple[int, Entry | None]:
        """Returns (queue offset, entry) of the segment's first entry from `queue_offset` on, past damaged ones."""
        first = queue_offset
        end = self.end_of(level, segment)
        entry = None
        while queue_offset < end:
            entry = self._store.queue_entry(SCHEDULE_TOPIC, level.queue_id, queue_offset)
            if entry is not None:
                break
            queue_offset += 1
        if queue_offset > first:
            logger.error("delay level %d: entries %d to %d are lost", level.number, first, queue_offset - 1)
        return queue_offset, entry

    def end_of(self, level: Level, segment: LevelSegment) -> int:
        """Returns the queue offset after the segment's last entry."""
        return self._store.max_offset(SCHEDULE_TOPIC, level.queue_id) if segment.end is None else segment.end

    def waiting_count(self, level: Level) -> int:
        return sum(max(0, self.end_of(level, segment) - segment.next_offset) for segment in level.segments)

    def lowest_commit_log_offset(self, level: Level) -> int | None:
        """Returns the lowest commit-log offset of a message that waits in any segment, None when none waits."""
        entries = [
            self._store.queue_entry(SCHEDULE_TOPIC, level.queue_id, segment.next_offset)
            for segment in level.segments
            if segment.stored_due_ms is not None
        ]
        return min((entry[0] for entry in entries if entry is not None), default=None)

    def begin_segment(self, level: Level, delay_ms: int) -> None:
        """Begins a segment with `delay_ms` at the end of the queue, where the last one has another delay.

        A last segment in which no message waits takes the new delay itself.
        """
        last = level.segments[-1]
        if last.delay_ms == delay_ms:
            return
        end = self._store.max_offset(SCHEDULE_TOPIC, level.queue_id)
        if last.next_offset >= end:
            last.delay_ms = delay_ms
            return
        last.end = end
        level.segments.append(LevelSegment(delay_ms, start=end, next_offset=end))
