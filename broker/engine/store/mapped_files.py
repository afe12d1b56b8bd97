"""The memory-mapped files of the indexes; their number is limited, because each mapping keeps a file descriptor."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from broker.engine.store.files import FileLayer


class MappedFiles:
    """Keeps at most `limit` files mapped and closes the oldest mapping beyond it: a broker may have 10,000 queues."""

    def __init__(self, files: FileLayer, limit: int) -> None:
        self.files = files
        self._limit = limit
        self._open: dict[Path, mmap.mmap] = {}

    def open(self, path: Path, byte_count: int) -> mmap.mmap:
        """Maps the file for reading and writing, creating it with `byte_count` bytes if need be. Raises OSError."""
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
        """Allocates the file's space up to `end`, and writes zeros from `start` on. Raises OSError.

        Writing the zeros puts the pages into the page cache: the first store through the mapping into a page that was
        only allocated would wait milliseconds for the file system.
        """
        descriptor = os.open(path, os.O_RDWR)
        try:
            self.files.allocate(descriptor, 0, end)
            os.pwrite(descriptor, bytes(end - start), start)
        finally:
            os.close(descriptor)

    def close(self, path: Path) -> None:
        """Closes the file's mapping, if it has one."""
        mapping = self._open.pop(path, None)
        if mapping is not None:
            mapping.close()

    def close_all(self) -> None:
        for path in list(self._open):
            self.close(path)
