"""The commit log: one append-only sequence of records in segments of equal size (RocketMQ's `CommitLog`).

Owns the segment files, the end of the log, and the rule that a record never crosses segments. Knows nothing of topics
and queues. Once `write` returns, the operating system has the bytes: a killed process does not lose them.

Event loop only, except `sync`, which the flusher thread calls: it reads `end` and `_unsynced` and removes segments from
the latter; the loop only ever appends to it.
"""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

from broker.engine.store.disk_failure import DiskFailure
from broker.engine.store.errors import RecordRefused, StoreError, StoreFull
from broker.engine.store.files import NO_SPACE_ERRNOS, SHORTAGE_REMEDIES, FileLayer
from broker.engine.store.layout import BLANK, RECORD_BYTES_MIN, file_name, starts_record, store_timestamp
from broker.engine.store.segment import Segment
from remoting.wire.stored_message import MAGIC_BLANK

# Each segment that is read keeps a file descriptor.
_READ_SEGMENTS_MAX = 128
# The checkpoint has a CRC of so many bytes before its end, to recognise the log: more than a record's CRC property.
_TAIL_BYTES = 64


class CommitLog:
    """The commit log. `end` is the offset of the next record, `min_offset` that of the first byte not yet removed."""

    def __init__(self, folder: Path, segment_bytes: int, files: FileLayer, disk_failure: DiskFailure) -> None:
        self.segment_bytes = segment_bytes
        self.end = 0
        self.min_offset = 0
        self._folder = folder
        self._files = files
        self._disk_failure = disk_failure
        self._segments: dict[int, Segment] = {}
        self._reading: list[Segment] = []
        self._active: Segment | None = None
        self._unsynced: list[Segment] = []
        folder.mkdir(exist_ok=True)
        for path in sorted(folder.iterdir()):
            self._adopt(path)
        self.min_offset = min(self._segments, default=0)

    def _adopt(self, path: Path) -> None:
        """Adds an existing segment file. Raises StoreError when its name or size is not that of a segment."""
        if not path.name.isdigit():
            return
        start = int(path.name)
        if start % self.segment_bytes or path.stat().st_size > self.segment_bytes:
            raise StoreError(f"{path} is no segment of {self.segment_bytes} bytes; move it out of the store")
        self._segments[start] = Segment(path, start, self.segment_bytes, self._files)

    # --- segments

    @property
    def capacity_end(self) -> int:
        """Returns the offset one past the last byte of the last segment file."""
        return max(self._segments, default=-self.segment_bytes) + self.segment_bytes

    def segment_of(self, commit_log_offset: int) -> Segment | None:
        """Returns the segment that holds the offset, None when there is none."""
        return self._segments.get(commit_log_offset - commit_log_offset % self.segment_bytes)

    def segments_from(self, commit_log_offset: int) -> list[Segment]:
        """Returns the segment that holds the offset and all later ones, in order."""
        first = commit_log_offset - commit_log_offset % self.segment_bytes
        return [self._segments[start] for start in sorted(self._segments) if start >= first]

    def read(self, segment: Segment, commit_log_offset: int, byte_count: int) -> bytes:
        """Returns up to `byte_count` bytes of `segment`, fewer at its end. Raises OSError."""
        if not segment.is_reading:
            if len(self._reading) >= _READ_SEGMENTS_MAX:
                self._reading.pop(0).stop_reading()
            self._reading.append(segment)
        return segment.read(commit_log_offset - segment.start, byte_count)

    def tail_crc(self, end: int) -> int:
        """Returns the CRC32 of the segment's last bytes before `end`, 0 if the segment begins there. Raises OSError."""
        position = end % self.segment_bytes
        segment = self.segment_of(end)
        if segment is None or not position:
            return 0
        count = min(position, _TAIL_BYTES)
        return crc32(self.read(segment, end - count, count))

    # --- retention

    def drop_below(self, commit_log_offset: int) -> None:
        """Removes the segments below the offset, but never the last one.

        Called before recovery: it completes a removal that a kill or a power cut interrupted.
        """
        last = max(self._segments, default=0)
        for start in sorted(start for start in self._segments if start < min(commit_log_offset, last)):
            self._forget(self._segments.pop(start))
        self.min_offset = min(self._segments, default=0)

    @property
    def oldest(self) -> Segment | None:
        """Returns the first segment; None when it is also the last, or may still be written or flushed."""
        first = self._segments.get(self.min_offset)
        if first is None or first is self._active or len(self._segments) < 2 or first in self._unsynced:
            return None
        return first

    def closed_ms(self, segment: Segment) -> int | None:
        """Returns the time at which `segment` was full: the store timestamp of the first record after it.

        Returns None when there is no such record. Raises OSError.
        """
        for following in self.segments_from(segment.end):
            if following.first_timestamp_ms is None:
                following.first_timestamp_ms = self._first_timestamp_ms(following)
            if following.first_timestamp_ms is not None:
                return following.first_timestamp_ms
        return None

    def _first_timestamp_ms(self, segment: Segment) -> int | None:
        start = self.read(segment, segment.start, RECORD_BYTES_MIN)
        if segment.start >= self.end or not starts_record(start, segment.start):
            return None
        return store_timestamp(start, 0)

    def detach_oldest(self, segment: Segment) -> Path:
        """Takes `segment` out of the log and returns the path of its file, which may then be deleted."""
        assert segment is self.oldest
        del self._segments[segment.start]
        if segment in self._reading:
            self._reading.remove(segment)
        segment.stop_reading()
        self.min_offset = min(self._segments)
        return segment.path

    # --- appending

    def open_at(self, end: int, unsure_from: int) -> None:
        """Opens the log for appends at `end`, the end of the last sound record, and deletes the segments after it.

        The bytes from `unsure_from` on may not be on the disk yet, because a killed process did not flush them: full
        segments are flushed here, the last one with the next `sync`. Raises OSError.
        """
        for start in [start for start in self._segments if start >= end]:
            self._forget(self._segments.pop(start))
        self.end = end
        self.min_offset = min(self._segments, default=end)
        active = self.segment_of(end)
        for segment in self._segments.values():
            if segment is not active and segment.end > unsure_from:
                segment.start_writing()
                segment.sync()
                segment.stop_writing()
        if active is not None:
            active.start_writing()
            self._activate(active)

    def _forget(self, segment: Segment) -> None:
        if segment in self._reading:
            self._reading.remove(segment)
        segment.stop_reading()
        segment.path.unlink()

    def _activate(self, segment: Segment) -> None:
        self._active = segment
        self._unsynced.append(segment)

    def reserve(self, total_bytes: int) -> int:
        """Returns the offset at which the next `total_bytes` are to be written, in a new segment if need be.

        Raises StoreFull when the disk has no space for a segment, RecordRefused when no segment can hold so many bytes,
        StoreFailed when creating the segment fails otherwise.
        """
        active = self._active
        if active is not None and self.end + total_bytes + BLANK.size <= active.end:
            return self.end
        if total_bytes + BLANK.size > self.segment_bytes:
            raise RecordRefused(f"{total_bytes} bytes do not fit a segment of {self.segment_bytes} bytes")
        self._roll()
        return self.end

    def _roll(self) -> None:
        """Starts a new segment, created before the old one is closed: without space for it nothing has changed."""
        start = (
            self._active.end if self._active is not None else -(-self.end // self.segment_bytes) * self.segment_bytes
        )
        path = self._folder / file_name(start)
        try:
            segment = Segment.create(path, start, self.segment_bytes, self._files)
        except OSError as error:
            remedy = SHORTAGE_REMEDIES.get(error.errno or 0)
            if remedy is not None:
                raise StoreFull(
                    f"no space for another segment of {self.segment_bytes} bytes in {self._folder} ({error.strerror}); "
                    f"{remedy}"
                ) from error
            raise self._disk_failure.record(f"creating {path}", error) from error
        if self._active is not None and self.end < self._active.end:
            self.write(self.end, BLANK.pack(self._active.end - self.end, MAGIC_BLANK))
        self.end = start
        self._segments[start] = segment
        self._activate(segment)
        self.min_offset = min(self._segments)

    def write(self, commit_log_offset: int, data: bytes) -> None:
        """Writes `data` at `commit_log_offset`, which `reserve` returned, and moves the end behind it.

        Raises StoreFull, with what was written of the data overwritten with zeros, or StoreFailed.
        """
        active = self._active
        assert active is not None
        assert commit_log_offset == self.end
        position = commit_log_offset - active.start
        try:
            written = active.write(position, data)
            while written < len(data):
                written += active.write(position + written, data[written:])
        except OSError as error:
            self._undo_write(active, position, len(data), error)
            raise StoreFull(f"no space to write to {active.path} ({error.strerror}); free space") from error
        self.end = commit_log_offset + len(data)

    def _undo_write(self, active: Segment, position: int, byte_count: int, error: OSError) -> None:
        """Zeroes the bytes of a write that ran out of space: a refused message must not be found by a recovery.

        Raises StoreFailed when that fails, or when `error` is no lack of space.
        """
        if error.errno not in NO_SPACE_ERRNOS:
            raise self._disk_failure.record(f"writing to {active.path}", error) from error
        try:
            dirty_bytes = len(active.read(position, byte_count).rstrip(b"\0"))
            if dirty_bytes and active.write(position, bytes(dirty_bytes)) != dirty_bytes:
                raise error
        except OSError as second:
            raise self._disk_failure.record(f"writing to {active.path}", second) from second

    # --- flushing and closing

    def sync(self) -> int:
        """Flushes all that was written before the call; returns the end up to which the log is on the disk.

        Raises OSError. Called in the flusher thread, or on the event loop once that thread has ended.
        """
        end = self.end
        pending = list(self._unsynced)
        for segment in pending:
            segment.sync()
        for segment in pending[:-1]:
            self._unsynced.remove(segment)
            segment.stop_writing()
        return end

    def close(self) -> None:
        """Closes the segments' files, without flushing them."""
        for segment in self._segments.values():
            segment.stop_writing()
            segment.stop_reading()
