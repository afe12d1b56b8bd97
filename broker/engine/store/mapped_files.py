"""Files of the indexes that are stored to through mappings, as many at a time as the process has descriptors for."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from broker.engine.store.files import FileLayer


class MappedFiles:
    """Keeps at most `limit` files mapped: each costs a descriptor, and a broker may have ten thousand queues."""

    def __init__(self, files: FileLayer, limit: int) -> None:
        self.files = files
        self._limit = limit
        self._open: dict[Path, mmap.mmap] = {}

    def open(self, path: Path, byte_count: int) -> mmap.mmap:
        """The file mapped for reading and writing, with `byte_count` bytes; made if it is not there."""
        known = self._open.get(path)
        if known is not None:
            return known
        if len(self._open) >= self._limit:
            self._open.pop(next(iter(self._open))).close()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if os.fstat(descriptor).st_size != byte_count:
                os.ftruncate(descriptor, byte_count)
            mapping = mmap.mmap(descriptor, byte_count)
        finally:
            os.close(descriptor)
        self._open[path] = mapping
        return mapping

    def allocate(self, path: Path, start: int, end: int) -> None:
        """Takes space for the bytes up to `end`; those from `start` on become zeros. Raises OSError.

        Writing the zeros brings the pages into memory: the first store through a mapping into a page that was only
        allocated waits for the file system, for milliseconds.
        """
        descriptor = os.open(path, os.O_RDWR)
        try:
            self.files.allocate(descriptor, 0, end)
            os.pwrite(descriptor, bytes(end - start), start)
        finally:
            os.close(descriptor)

    def close(self, path: Path) -> None:
        mapping = self._open.pop(path, None)
        if mapping is not None:
            mapping.close()

    def close_all(self) -> None:
        for path in list(self._open):
            self.close(path)
