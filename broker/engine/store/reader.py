"""Reading: from a queue offset to stored messages, as RocketMQ's `DefaultMessageStore.getMessage` answers.

| status | when | next_begin_offset |
|---|---|---|
| NO_MATCHED_LOGIC_QUEUE, NO_MESSAGE_IN_QUEUE | the queue never had a message | 0 |
| OFFSET_TOO_SMALL | asked < min | min |
| OFFSET_OVERFLOW_ONE | asked == max | asked |
| OFFSET_OVERFLOW_BADLY | asked > max | max |
| FOUND | at least one message | behind the last entry looked at |
| NO_MATCHED_MESSAGE | none passed the filter, or all are lost | behind the last entry looked at |
| MESSAGE_WAS_REMOVING | the log no longer has them | behind the last entry looked at |

The body is cut out of the mapped segments and joined once; messages that lie side by side are one slice. Whoever reads
sees what was appended, flushed or not, as in RocketMQ. Event loop only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from broker.engine.store.commit_log import CommitLog
from broker.engine.store.consume_queue import ConsumeQueue
from broker.engine.store.layout import (
    HOLE_BYTES,
    QUEUE_ENTRY,
    QUEUE_ENTRY_BYTES,
    RECORD_START,
    sound_record_bytes,
    store_timestamp,
)
from broker.engine.store.queue_table import QueueTable
from broker.engine.store.values import Boundary, ReadResult, ReadStatus
from remoting.wire.stored_message import MAGIC_V1, MAGIC_V2

logger = logging.getLogger(__name__)

# Java scans max(16000, maxMsgNums * 20) bytes of the consume queue in one call.
_SCANNED_ENTRIES_MIN = 16_000 // QUEUE_ENTRY_BYTES

Matches = Callable[[int], bool]


class Reader:
    def __init__(self, log: CommitLog, queues: QueueTable) -> None:
        self._log = log
        self._queues = queues

    def read(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        *,
        max_messages: int,
        max_bytes: int,
        matches: Matches | None,
    ) -> ReadResult:
        """Up to `max_messages` messages of at most `max_bytes`; the first one is taken whatever its size."""
        queue = self._queues.get(topic, queue_id)
        if queue is None:
            return ReadResult(ReadStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0)
        end = queue.max_offset
        if end == 0:
            return ReadResult(ReadStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0)
        start = queue.min_offset(self._log.min_offset)
        if queue_offset < start:
            return ReadResult(ReadStatus.OFFSET_TOO_SMALL, start, start, end)
        if queue_offset == end:
            return ReadResult(ReadStatus.OFFSET_OVERFLOW_ONE, end, start, end)
        if queue_offset > end:
            return ReadResult(ReadStatus.OFFSET_OVERFLOW_BADLY, end, start, end)
        entries = queue.entries(queue_offset, max(_SCANNED_ENTRIES_MIN, max_messages))
        harvest = _Harvest(self._log)
        scanned = harvest.gather(entries, max_messages, max_bytes, matches)
        following = queue_offset + scanned
        if harvest.count:
            return ReadResult(ReadStatus.FOUND, following, start, end, harvest.body(), harvest.count)
        status = ReadStatus.MESSAGE_WAS_REMOVING if harvest.has_removed else ReadStatus.NO_MATCHED_MESSAGE
        return ReadResult(status, following, start, end)

    def timestamp_at(self, commit_log_offset: int) -> int:
        """Store timestamp of the record there, -1 when the log no longer has it."""
        segment = self._log.segment_of(commit_log_offset)
        if segment is None or commit_log_offset >= self._log.end:
            return -1
        return store_timestamp(self._log.view(segment), commit_log_offset - segment.start)

    def offset_by_time(self, queue: ConsumeQueue, timestamp_ms: int, boundary: Boundary) -> int:
        """LOWER: the first message stored at or after the time, max offset if none. UPPER: the last at or before it.

        Before the first message, UPPER is 0 (RocketMQ's answer). An empty queue gives its max offset.
        """
        first, end = queue.min_offset(self._log.min_offset), queue.max_offset
        if first == end:
            return end
        if boundary is Boundary.LOWER:
            return max(first, queue.first_where(lambda entry: self._time(entry[0]) >= timestamp_ms))
        after = queue.first_where(lambda entry: self._time(entry[0]) > timestamp_ms)
        return after - 1 if after > first else 0

    def _time(self, commit_log_offset: int) -> int:
        """For a search: removed records, and the placeholders of RocketMQ, come before all others."""
        if commit_log_offset < self._log.min_offset:
            return -1
        return self.timestamp_at(commit_log_offset)

    def record_at(self, commit_log_offset: int) -> bytes | None:
        """The record that starts there, checked to the last bit: a client may ask for any offset."""
        segment = self._log.segment_of(commit_log_offset)
        if segment is None or not 0 <= commit_log_offset < self._log.end:
            return None
        with self._log.view(segment) as view:
            position = commit_log_offset - segment.start
            size = sound_record_bytes(view, position, commit_log_offset)
            return bytes(view[position : position + size]) if size else None


class _Harvest:
    """The messages of one read as runs of bytes: (segment start, from, to)."""

    def __init__(self, log: CommitLog) -> None:
        self.count = 0
        self.has_removed = False
        self._log = log
        self._slices: list[memoryview] = []

    def gather(self, entries: bytes, max_messages: int, max_bytes: int, matches: Matches | None) -> int:
        """Takes what fits. Returns how many entries were looked at."""
        log = self._log
        scanned = taken_bytes = 0
        run_start = run_end = segment_start = segment_end = -1
        view = memoryview(b"")
        for offset, size, code in QUEUE_ENTRY.iter_unpack(entries):
            if size != HOLE_BYTES and (matches is None or matches(code)):
                if self.count and taken_bytes + size > max_bytes:
                    break
                if not segment_start <= offset < segment_end:
                    self._close_run(view, run_start - segment_start, run_end - segment_start)
                    run_start = run_end = -1
                    segment = log.segment_of(offset)
                    if segment is None:
                        self.has_removed = True
                        segment_start = segment_end = -1
                        scanned += 1
                        continue
                    view, segment_start, segment_end = log.view(segment), segment.start, segment.end
                if not _is_record(view, offset - segment_start, size, offset):
                    logger.error("a queue entry points to %d, where no message of %d bytes is", offset, size)
                    scanned += 1
                    continue
                if offset != run_end:
                    self._close_run(view, run_start - segment_start, run_end - segment_start)
                    run_start = offset
                run_end = offset + size
                taken_bytes += size
                self.count += 1
            scanned += 1
            if self.count >= max_messages:
                break
        self._close_run(view, run_start - segment_start, run_end - segment_start)
        return scanned

    def _close_run(self, view: memoryview, start: int, end: int) -> None:
        if end > start >= 0:
            self._slices.append(view[start:end])

    def body(self) -> bytes:
        body = b"".join(self._slices)
        self._slices.clear()
        return body


def _is_record(view: memoryview, position: int, size: int, commit_log_offset: int) -> bool:
    if position + size > len(view) or size < RECORD_START.size:
        return False
    total, magic, own_offset = RECORD_START.unpack_from(view, position)
    return total == size and own_offset == commit_log_offset and magic in (MAGIC_V1, MAGIC_V2)
