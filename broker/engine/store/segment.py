"""One file of the commit log: fixed size, allocated as a whole, written with pwrite, read through a mapping.

Reads and writes happen on the event loop. The flusher thread only calls `sync` and `stop_writing`, both on the
descriptor that the writes went through, so that it hears of every write-back error.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from broker.engine.store.files import FileLayer


class Segment:
    """`start` is the commit-log offset of the first byte; the segment holds `size_bytes`."""

    def __init__(self, path: Path, start: int, size_bytes: int, files: FileLayer) -> None:
        self.path = path
        self.start = start
        self.end = start + size_bytes
        self.size_bytes = size_bytes
        self._files = files
        self._descriptor = -1
        self._mapping: mmap.mmap | None = None

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
    def is_mapped(self) -> bool:
        return self._mapping is not None

    @property
    def mapping(self) -> mmap.mmap:
        """The whole segment as bytes, kept mapped until `unmap`. A file that was cut short reads as zeros there."""
        if self._mapping is None:
            descriptor = os.open(self.path, os.O_RDWR)
            try:
                if os.fstat(descriptor).st_size < self.size_bytes:
                    os.ftruncate(descriptor, self.size_bytes)
                self._mapping = mmap.mmap(descriptor, self.size_bytes, prot=mmap.PROT_READ)
            finally:
                os.close(descriptor)
        return self._mapping

    def unmap(self) -> None:
        if self._mapping is not None:
            self._mapping.close()
            self._mapping = None
