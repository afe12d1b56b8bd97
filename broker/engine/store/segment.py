"""One file of the commit log (RocketMQ's `MappedFile`): of fixed size, fully allocated, used with pwrite and pread.

Not read through a memory mapping: its pages count as memory of the process, and a bad sector would kill the process.
Only scans of the whole log (recovery, verify) map segments, one at a time.

Reads and writes happen on the event loop. The flusher thread calls only `sync` and `stop_writing`, both on the
descriptor that the writes used: that one is sure to report every write-back error.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker.engine.store.files import FileLayer


class Segment:
    """One segment of the commit log; `start` is the commit-log offset of its first byte."""

    def __init__(self, path: Path, start: int, size_bytes: int, files: FileLayer) -> None:
        self.path = path
        self.start = start
        self.end = start + size_bytes
        self.size_bytes = size_bytes
        # Of the first record; set by `CommitLog.closed_ms`, which needs it for the age of the segment before.
        self.first_timestamp_ms: int | None = None
        self._files = files
        self._descriptor = -1
        self._reader = -1

    @classmethod
    def create(cls, path: Path, start: int, size_bytes: int, files: FileLayer) -> Segment:
        """Creates a segment of zeros with its space allocated. Raises OSError, with the file deleted again."""
        segment = cls(path, start, size_bytes, files)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            files.allocate(descriptor, 0, size_bytes)
            files.fdatasync(descriptor)
            files.sync_path(path.parent)
        except OSError:
            os.close(descriptor)
            path.unlink()
            raise
        segment._descriptor = descriptor
        return segment

    def start_writing(self) -> None:
        """Opens an existing segment for appends and allocates the space that its file lacks. Raises OSError."""
        self._descriptor = os.open(self.path, os.O_RDWR)
        self._files.allocate(self._descriptor, 0, self.size_bytes)

    def write(self, position: int, data: bytes) -> int:
        """Writes `data` at `position`. Returns the number of bytes written, which may be fewer. Raises OSError."""
        return self._files.pwrite(self._descriptor, data, position)

    def sync(self) -> None:
        """Flushes everything written so far to the disk. Raises OSError."""
        if self._descriptor >= 0:
            self._files.fdatasync(self._descriptor)

    def stop_writing(self) -> None:
        """Closes the descriptor for writes."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def is_reading(self) -> bool:
        """Tells whether the descriptor for reads is open."""
        return self._reader >= 0

    def read(self, position: int, byte_count: int) -> bytes:
        """Returns up to `byte_count` bytes from `position`, fewer at the end of the file. Raises OSError."""
        if self._reader < 0:
            self._reader = os.open(self.path, os.O_RDONLY)
        return os.pread(self._reader, byte_count, position)

    def stop_reading(self) -> None:
        """Closes the descriptor for reads."""
        if self._reader >= 0:
            os.close(self._reader)
            self._reader = -1

    @contextmanager
    def mapped(self) -> Iterator[memoryview]:
        """Maps the whole segment for a scan, and first extends a truncated file with zeros. Raises OSError."""
        descriptor = os.open(self.path, os.O_RDWR)
        try:
            if os.fstat(descriptor).st_size < self.size_bytes:
                os.ftruncate(descriptor, self.size_bytes)
            mapping = mmap.mmap(descriptor, self.size_bytes, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)
        with mapping, memoryview(mapping) as view:
            yield view
