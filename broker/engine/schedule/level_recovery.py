"""Recovery of the delay levels when the broker starts: their segments, and how far each was delivered.

It reads the history of the table, the progress file, and the copies in the log that the file does not count yet.
"""

from __future__ import annotations

import logging

from broker.engine.schedule.copies import copies_from, is_copy_from, source_offset
from broker.engine.schedule.level_history import LevelHistory
from broker.engine.schedule.level_queues import LevelQueues
from broker.engine.schedule.level_segments import Level, LevelSegment, delay_of, drop_delivered, split_at
from broker.engine.schedule.progress import FILE_NAME, DelayProgress
from broker.engine.store.message_store import MessageStore
from remoting.wire.names import SCHEDULE_TOPIC
from remoting.wire.properties import Property
from remoting.wire.stored_message import StoredMessage

logger = logging.getLogger(__name__)

# A DELAY property with more digits is not taken for a level.
LEVEL_DIGITS_MAX = 9


def recover_levels(
    store: MessageStore, queues: LevelQueues, history: LevelHistory, saved: DelayProgress
) -> dict[str, Level]:
    """Returns the levels by their numbers: those of the table, and others that have a queue."""
    numbers = {queue_id + 1 for queue_id in store.queues(SCHEDULE_TOPIC)}
    numbers |= set(range(1, len(history.current.delays_ms) + 1))
    levels = {str(number): Level(number, _segments_of(store, history, saved, number)) for number in sorted(numbers)}
    if saved.delivering_from is not None and any(queues.waiting_count(level) for level in levels.values()):
        _count_copies_from(store, levels, saved.delivering_from)
    for level in levels.values():
        _clamp(store, level)
        queues.advance_all(level)
    return levels


def _segments_of(store: MessageStore, history: LevelHistory, saved: DelayProgress, number: int) -> list[LevelSegment]:
    """Returns a level's segments, from the history of the table and the saved progress, each with its next offset."""
    segments: list[LevelSegment] = []
    for since, table in history.changes:
        delay_ms = delay_of(number, table.delays_ms)
        start = _first_behind(store, number - 1, since) if segments else 0
        if segments and (segments[-1].delay_ms == delay_ms or segments[-1].start == start):
            segments[-1].delay_ms = delay_ms
            continue
        if segments:
            segments[-1].end = start
        segments.append(LevelSegment(delay_ms, start=start))
    lowest = saved.next_offsets.get(number, 0)
    starts = saved.segments.get(number, {})
    # Where a segment began under a table that the history has forgotten, the saved progress alone says.
    high = store.max_offset(SCHEDULE_TOPIC, number - 1)
    segments = split_at(segments, [start for start in starts if start <= high])
    for segment in segments:
        # A segment that was empty took over the delay of the next table; its progress was saved under its old start.
        before = (offset for start, offset in starts.items() if start <= segment.start)
        segment.next_offset = max(segment.start, lowest, *before)
        if segment.end is not None:
            segment.next_offset = min(segment.next_offset, segment.end)
    return drop_delivered(segments)


def _first_behind(store: MessageStore, queue_id: int, commit_log_offset: int) -> int:
    """Returns the queue offset of the first entry whose message was stored at or after `commit_log_offset`."""
    low = store.min_offset(SCHEDULE_TOPIC, queue_id)
    high = store.max_offset(SCHEDULE_TOPIC, queue_id)
    while low < high:
        middle = (low + high) // 2
        entry = store.queue_entry(SCHEDULE_TOPIC, queue_id, middle)
        if entry is not None and entry[0] < commit_log_offset:
            low = middle + 1
        else:
            high = middle
    return low


def _count_copies_from(store: MessageStore, levels: dict[str, Level], commit_log_offset: int) -> None:
    """Moves segments past the messages whose copies stand in the log from `commit_log_offset` on."""
    for copy in copies_from(store, commit_log_offset, SCHEDULE_TOPIC, Property.DELAY):
        level = levels.get(str(_level_of(copy)))
        segment = level.segment_of(source_offset(copy)) if level is not None else None
        if level is None or segment is None:
            continue
        if is_copy_from(store, copy, SCHEDULE_TOPIC, level.queue_id):
            segment.next_offset = copy.prepared_transaction_offset


def _level_of(copy: StoredMessage) -> int:
    """Returns the level that the copy's properties name; 0 when they name none."""
    level = copy.properties.get(Property.DELAY, "")
    return int(level) if level.isdecimal() and len(level) <= LEVEL_DIGITS_MAX else 0


def _clamp(store: MessageStore, level: Level) -> None:
    """Clamps the next offsets to the queue's ends: in a store that was copied or rolled back, the progress file may lie
    outside them (apache/rocketmq issue 1472)."""
    low = store.min_offset(SCHEDULE_TOPIC, level.queue_id)
    high = store.max_offset(SCHEDULE_TOPIC, level.queue_id)
    for segment in level.segments:
        offset = max(low, min(segment.next_offset, high))
        if offset != segment.next_offset:
            logger.warning(
                "delay level %d: %s has the next offset %d, but its queue holds %d to %d; going on at %d",
                *(level.number, FILE_NAME, segment.next_offset, low, high, offset),
            )
            segment.next_offset = offset
