"""Reads the messages of a queue from an offset on, with the results of RocketMQ's `DefaultMessageStore.getMessage`.

| status | when | next_begin_offset |
|---|---|---|
| NO_MATCHED_LOGIC_QUEUE, NO_MESSAGE_IN_QUEUE | the queue never had a message | 0 |
| OFFSET_TOO_SMALL | requested offset < min | min |
| OFFSET_OVERFLOW_ONE | requested offset == max | max |
| OFFSET_OVERFLOW_BADLY | requested offset > max | max |
| FOUND | at least one message | behind the last entry scanned |
| NO_MATCHED_MESSAGE | no message passed the filter | behind the last entry scanned |
| MESSAGE_WAS_REMOVING | the log no longer has any of them | behind the last entry scanned |

Messages that are adjacent in the log are read with one call; the pieces are joined once. A message can be read as soon
as it is appended, flushed or not, as in RocketMQ. Event loop only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import NamedTuple

from broker.engine.store.commit_log import CommitLog
from broker.engine.store.consume_queue import ConsumeQueue
from broker.engine.store.layout import (
    HOLE_BYTES,
    QUEUE_ENTRY,
    QUEUE_ENTRY_BYTES,
    RECORD_BYTES_MIN,
    RECORD_START,
    sound_record_bytes,
    store_timestamp,
)
from broker.engine.store.queue_table import QueueTable
from broker.engine.store.record_window import PropertiesMatch, RecordWindow
from broker.engine.store.values import Boundary, ReadResult, ReadStatus
from remoting.complaints import ComplaintLog
from remoting.wire.errors import BodyError
from remoting.wire.stored_message import MAGIC_V1, MAGIC_V2
from remoting.wire.stored_properties import START_BYTES_MAX, properties_in_tail, tail_position

# Java scans max(16000, maxMsgNums * 20) bytes of the consume queue in one call.
_SCANNED_ENTRIES_MIN = 16_000 // QUEUE_ENTRY_BYTES
# A scan that evaluates an expression on properties ends after this time: the event loop is blocked meanwhile.
_SCAN_S_MAX = 0.01
# Such a scan checks the clock after entries 1, 2, 4, 8, 16, and then after every 16 more.
_SCANNED_BETWEEN_CLOCK_CHECKS_MAX = 16
# The properties of a larger record are read without its body: first its start, then its tail.
_READ_WHOLE_BYTES_MAX = 4096

Matches = Callable[[int], bool]


class Reader:
    """Reads messages by queue offset, by commit-log offset and by time."""

    def __init__(self, log: CommitLog, queues: QueueTable, complaints: ComplaintLog) -> None:
        """`complaints` gets a line of damaged entries: a consumer may read the same ones again and again."""
        self._log = log
        self._queues = queues
        self._complaints = complaints

    def read(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        *,
        max_messages: int,
        max_bytes: int,
        matches: Matches | None,
        properties_match: PropertiesMatch | None,
    ) -> ReadResult:
        """Returns up to `max_messages` messages of `max_bytes` together; the first one may be larger than that.

        `matches` filters by tags code, `properties_match` by properties, which are read of every message scanned.
        Raises OSError.
        """
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
        is_wanted = None if properties_match is None else self._test_of_records(properties_match)
        pick = _pick(entries, max_messages, max_bytes, matches, is_wanted)
        following = queue_offset + pick.scanned
        if not pick.wanted:
            return ReadResult(ReadStatus.NO_MATCHED_MESSAGE, following, start, end)
        count, body = self._gather(topic, pick.wanted)
        if not count:
            return ReadResult(ReadStatus.MESSAGE_WAS_REMOVING, following, start, end)
        return ReadResult(ReadStatus.FOUND, following, start, end, body, count)

    def _gather(self, topic: str, wanted: list[tuple[int, int]]) -> tuple[int, bytes]:
        """Reads the records. Returns the number of those that the log still has, and their bytes. Raises OSError."""
        log = self._log
        parts: list[bytes] = []
        count = 0
        for run in _runs(wanted, log.segment_bytes):
            first, (last, last_size) = run[0][0], run[-1]
            segment = log.segment_of(first)
            if segment is None:
                continue
            sound_count, sound = self._sound_part(topic, log.read(segment, first, last + last_size - first), run)
            count += sound_count
            parts += sound
        return count, parts[0] if len(parts) == 1 else b"".join(parts)

    def _sound_part(self, topic: str, content: bytes, run: list[tuple[int, int]]) -> tuple[int, list[bytes]]:
        """Returns the number and bytes of the records that match their queue entries; `content` has the bytes of
        `run`."""
        start = run[0][0]
        is_sound = [_is_record(content, offset - start, size, offset) for offset, size in run]
        if all(is_sound):
            return len(run), [content]
        pairs = list(zip(run, is_sound, strict=True))
        for (offset, size), is_right in pairs:
            if not is_right:
                words = "topic %s: a queue entry points to commit-log offset %d, but no message of %d bytes is there"
                self._complaints.error(topic, "damaged queue entry", words, topic, offset, size)
        sound = [content[offset - start : offset - start + size] for (offset, size), is_right in pairs if is_right]
        return len(sound), sound

    def _test_of_records(self, match: PropertiesMatch) -> Callable[[int, int], bool]:
        """Returns the filter by commit-log offset and size. It passes missing records, which `_gather` drops."""

        properties_at = RecordWindow(self._log, self.properties_at).properties_at

        def is_wanted(commit_log_offset: int, size: int) -> bool:
            properties = properties_at(commit_log_offset, size)
            return properties is None or match(properties)

        return is_wanted

    def properties_at(self, commit_log_offset: int, size: int) -> bytes | None:
        """Returns the properties of a record of `size` bytes, encoded as in `property_lookup.py`.

        Returns None when the log has no such record at the offset. Raises OSError.
        """
        segment = self._log.segment_of(commit_log_offset)
        if segment is None:
            return None
        is_small = size <= _READ_WHOLE_BYTES_MAX
        start = self._log.read(segment, commit_log_offset, size if is_small else START_BYTES_MAX)
        if not _is_record(start, 0, size, commit_log_offset, is_whole=is_small):
            return None
        try:
            tail_at = tail_position(start)
            if is_small:
                return properties_in_tail(start, start, tail_at)
            return properties_in_tail(start, self._log.read(segment, commit_log_offset + tail_at, size - tail_at))
        except BodyError:
            return None

    def timestamp_at(self, commit_log_offset: int) -> int:
        """Returns the store timestamp of the record at the offset, -1 when the log does not have it. Raises OSError."""
        segment = self._log.segment_of(commit_log_offset)
        if segment is None or commit_log_offset >= self._log.end:
            return -1
        start = self._log.read(segment, commit_log_offset, RECORD_BYTES_MIN)
        return store_timestamp(start, 0) if len(start) == RECORD_BYTES_MIN else -1

    def offset_by_time(self, queue: ConsumeQueue, timestamp_ms: int, boundary: Boundary) -> int:
        """Returns a queue offset for a time.

        LOWER: the first message stored at or after it, max offset if there is none. UPPER: the last one stored at or
        before it, 0 if there is none (as in RocketMQ). For an empty queue both are its max offset. Raises OSError.
        """
        first, end = queue.min_offset(self._log.min_offset), queue.max_offset
        if first == end:
            return end
        if boundary is Boundary.LOWER:
            return max(first, queue.first_where(lambda entry: self._time(entry[0]) >= timestamp_ms))
        after = queue.first_where(lambda entry: self._time(entry[0]) > timestamp_ms)
        return after - 1 if after > first else 0

    def _time(self, commit_log_offset: int) -> int:
        """Returns the store timestamp; -1 for removed records and RocketMQ's placeholders, the first of a queue."""
        if commit_log_offset < self._log.min_offset:
            return -1
        return self.timestamp_at(commit_log_offset)

    def record_at(self, commit_log_offset: int) -> bytes | None:
        """Returns the record that starts at the offset, None when there is none. Raises OSError.

        Its CRC is checked, because clients may request any offset.
        """
        segment = self._log.segment_of(commit_log_offset)
        if segment is None or not 0 <= commit_log_offset < self._log.end:
            return None
        start = self._log.read(segment, commit_log_offset, RECORD_START.size)
        if len(start) < RECORD_START.size:
            return None
        total = RECORD_START.unpack(start)[0]
        if not RECORD_BYTES_MIN <= total <= segment.end - commit_log_offset:
            return None
        record = self._log.read(segment, commit_log_offset, total)
        return record if sound_record_bytes(memoryview(record), 0, commit_log_offset) else None


class _Pick(NamedTuple):
    """The messages selected for an answer, as (commit-log offset, size), and the number of entries scanned for them."""

    wanted: list[tuple[int, int]]
    scanned: int


def _pick(
    entries: bytes,
    max_messages: int,
    max_bytes: int,
    matches: Matches | None,
    is_wanted: Callable[[int, int], bool] | None,
) -> _Pick:
    """Selects messages from queue entries. `is_wanted` is called with a message's commit-log offset and size."""
    wanted: list[tuple[int, int]] = []
    scanned = taken_bytes = 0
    ends_s = perf_counter() + _SCAN_S_MAX
    next_clock_check = -1 if is_wanted is None else 1
    for offset, size, code in QUEUE_ENTRY.iter_unpack(entries):
        if size != HOLE_BYTES and (matches is None or matches(code)) and (is_wanted is None or is_wanted(offset, size)):
            if wanted and taken_bytes + size > max_bytes:
                break
            wanted.append((offset, size))
            taken_bytes += size
        scanned += 1
        if len(wanted) >= max_messages:
            break
        if scanned == next_clock_check:
            if perf_counter() >= ends_s:
                break
            next_clock_check += min(scanned, _SCANNED_BETWEEN_CLOCK_CHECKS_MAX)
    return _Pick(wanted, scanned)


def _runs(wanted: list[tuple[int, int]], segment_bytes: int) -> Iterator[list[tuple[int, int]]]:
    """Yields groups of messages that are adjacent in one segment, so that each group is read with one call."""
    run: list[tuple[int, int]] = []
    end = -1
    for offset, size in wanted:
        if run and (offset != end or not offset % segment_bytes):
            yield run
            run = []
        run.append((offset, size))
        end = offset + size
    if run:
        yield run


def _is_record(content: bytes, position: int, size: int, commit_log_offset: int, *, is_whole: bool = True) -> bool:
    """Tells whether `content` has the start of that record at `position` or, if `is_whole`, all its bytes."""
    if position + (size if is_whole else RECORD_START.size) > len(content) or size < RECORD_START.size:
        return False
    total, magic, own_offset = RECORD_START.unpack_from(content, position)
    return total == size and own_offset == commit_log_offset and magic in (MAGIC_V1, MAGIC_V2)
