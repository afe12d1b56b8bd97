"""The change log of a config file: one flushed line for each change since the file was last written whole.

    <file>.changes    lines of | 8 hex digits, CRC32 of the JSON | blank | JSON | newline |, then zeros

Owns the lines and their CRCs, and the space allocated ahead of them: a line written over zeros that are on the disk
already costs one `fdatasync`, without changes of the file system's metadata. Knows nothing of the lines' content. A
line that was cut off by a kill or a power cut is not read: its change was never acknowledged. Event loop only; a flush
may run in a thread, beside further writes.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from broker.engine.store.files import FileLayer

logger = logging.getLogger(__name__)

# Allocated at once: about a thousand changes.
_SPACE_BYTES = 256 * 1024
_CRC_CHARS = 8


class ChangeLog:
    """Appends to, reads and clears the file of changes beside a config file."""

    def __init__(self, path: Path, files: FileLayer | None = None) -> None:
        self._path = path
        self._files = files or FileLayer()
        self._descriptor: int | None = None
        self._end = 0
        self._space_end = 0

    @property
    def byte_count(self) -> int:
        """Returns the length of the lines that were appended since the file was begun."""
        return self._end

    def read(self) -> list[bytes]:
        """Returns the JSON of each sound line, also of those after a damaged one, which is logged. Raises OSError."""
        try:
            lines = self._path.read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        sound = [line[_CRC_CHARS + 1 :] for line in lines if _is_sound(line)]
        damaged = [number for number, line in enumerate(lines, start=1) if not _is_sound(line)]
        if damaged:
            logger.error("%s: lines %s are damaged; their changes are lost", self._path, damaged[:10])
        return sound

    def write(self, change: bytes) -> int:
        """Appends a line, which is not flushed yet, and returns where it begins.

        Raises OSError; the line is overwritten with zeros then, as far as the disk permits.
        """
        line = b"%08x %s\n" % (crc32(change), change)
        descriptor = self._open()
        if self._end + len(line) > self._space_end:
            self._take_space(descriptor, len(line))
        position = self._end
        try:
            self._write(descriptor, line, position)
        except OSError:
            with suppress(OSError):
                self._write(descriptor, bytes(len(line)), position)
            raise
        self._end += len(line)
        return position

    def flush(self) -> None:
        """Returns when all lines survive a power cut. Raises OSError."""
        self._files.fdatasync(self._open())

    async def flush_in_thread(self) -> None:
        """Returns when all lines that were written before the call survive a power cut. Raises OSError."""
        # Of its own: the file may be removed meanwhile, with a config file written whole.
        descriptor = os.dup(self._open())
        try:
            await asyncio.to_thread(self._files.fdatasync, descriptor)
        finally:
            os.close(descriptor)

    def undo(self, position: int) -> bool:
        """Overwrites the lines from `position` on with zeros; returns False if the disk does not permit that."""
        byte_count, self._end = self._end - position, position
        try:
            self._write(self._open(), bytes(byte_count), position)
        except OSError:
            return False
        return True

    def clear(self) -> None:
        """Removes the file, once the config file holds all changes. Raises OSError."""
        self.close()
        self._path.unlink(missing_ok=True)
        self._end = self._space_end = 0

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        """Opens the file, emptied: the config file holds the changes that were read from it by now."""
        if self._descriptor is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            self._end = self._space_end = 0
            self._files.sync_path(self._path.parent)
        return self._descriptor

    def _take_space(self, descriptor: int, byte_count: int) -> None:
        zeros = bytes(byte_count + _SPACE_BYTES)
        self._files.allocate(descriptor, self._end, len(zeros))
        self._write(descriptor, zeros, self._end)
        self._space_end = self._end + len(zeros)

    def _write(self, descriptor: int, data: bytes, position: int) -> None:
        written = self._files.pwrite(descriptor, data, position)
        while written < len(data):
            written += self._files.pwrite(descriptor, data[written:], position + written)


def _is_sound(line: bytes) -> bool:
    return line[:_CRC_CHARS] == b"%08x" % crc32(line[_CRC_CHARS + 1 :]) and line[_CRC_CHARS : _CRC_CHARS + 1] == b" "
