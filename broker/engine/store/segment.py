"""One file of the commit log: fixed size, allocated as a whole, written with pwrite, read with pread.

Not read through a mapping: pages of a mapping count as memory of the process, and a bad sector would kill it. Only a
walk over everything (recovery, verify) maps, one segment at a time.

Reads and writes happen on the event loop. The flusher thread only calls `sync` and `stop_writing`, both on the
descriptor that the writes went through, so that it hears of every write-back error.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker.engine.store.files import FileLayer


class Segment:
    """`start` is the commit-log offset of the first byte; the segment holds `size_bytes`."""

    def __init__(self, path: Path, start: int, size_bytes: int, files: FileLayer) -> None:
        self.path = path
        self.start = start
        self.end = start + size_bytes
        self.size_bytes = size_bytes
        # Of its first record; the log looks it up when it asks how old the segment before is.
        self.first_timestamp_ms: int | None = None
        self._files = files
        self._descriptor = -1
        self._reader = -1

    @classmethod
    def create(cls, path: Path, start: int, size_bytes: int, files: FileLayer) -> Segment:
        """A new segment of zeros, its space taken from the disk. Raises OSError and leaves nothing behind."""
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
        """Opens an existing segment for appends; where its file was cut short or has gaps, it gets its space back."""
        self._descriptor = os.open(self.path, os.O_RDWR)
        self._files.allocate(self._descriptor, 0, self.size_bytes)

    def write(self, position: int, data: bytes) -> int:
        """Bytes written at `position`, which may be fewer. Raises OSError."""
        return self._files.pwrite(self._descriptor, data, position)

    def sync(self) -> None:
        """Returns when everything written so far is on the disk. Raises OSError."""
        if self._descriptor >= 0:
            self._files.fdatasync(self._descriptor)

    def stop_writing(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def is_reading(self) -> bool:
        return self._reader >= 0

    def read(self, position: int, byte_count: int) -> bytes:
        """Up to `byte_count` bytes; fewer where the file was cut short. Raises OSError."""
        if self._reader < 0:
            self._reader = os.open(self.path, os.O_RDONLY)
        return os.pread(self._reader, byte_count, position)

    def stop_reading(self) -> None:
        if self._reader >= 0:
            os.close(self._reader)
            self._reader = -1

    @contextmanager
    def mapped(self) -> Iterator[memoryview]:
        """The whole segment as bytes, for a walk over it; where its file was cut short it reads as zeros."""
        descriptor = os.open(self.path, os.O_RDWR)
        try:
            if os.fstat(descriptor).st_size < self.size_bytes:
                os.ftruncate(descriptor, self.size_bytes)
            mapping = mmap.mmap(descriptor, self.size_bytes, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)
        with mapping, memoryview(mapping) as view:
            yield view
