"""The checkpoint: up to where the log and everything derived from it are known to be on the disk.

    checkpoint, 4096 bytes
    |    0 | RocketMQ's: 8 log, 8 queue, 8 index timestamp, 8 flushed offset, 8 confirmed offset |
    |  512 | ours: 8 magic, 8 sequence, 8 end, 8 timestamp, 8 queues, 8 entries, 16 key index, 1 clean, 4 CRC |
    | 1024 | the same; the two are written in turn, so that one is always whole |

The queue count and entry total let a start notice that consume queues were lost or cut.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from zlib import crc32

import msgspec

from broker.engine.store.files import FileLayer

_FILE_BYTES = 4096
_ROCKETMQ = struct.Struct(">qqqqq")
_OURS = struct.Struct(">8sqqqqqqq?")
_CRC = struct.Struct(">I")
_MAGIC = b"mqachk01"
_PLACES = (512, 1024)


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """`end` is a commit-log offset; `is_clean` says that the store was closed there and nothing came after."""

    end: int = 0
    last_timestamp_ms: int = 0
    queue_count: int = 0
    entry_total: int = 0
    key_position: tuple[int, int] = (0, 0)
    is_clean: bool = False


class CheckpointFile:
    """Read once at the start; then written by one thread at a time (flusher, or the loop when that has ended)."""

    def __init__(self, path: Path, files: FileLayer) -> None:
        self._path = path
        self._files = files
        self._sequence = 0

    def read(self) -> Checkpoint | None:
        """The newest whole checkpoint, None when there is none."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return None
        newest: Checkpoint | None = None
        for place in _PLACES:
            sequence, checkpoint = _parse(content[place : place + _OURS.size + _CRC.size])
            if checkpoint is not None and sequence > self._sequence:
                self._sequence, newest = sequence, checkpoint
        return newest

    def write(self, checkpoint: Checkpoint) -> None:
        """Returns when it is on the disk. Raises OSError."""
        self._sequence += 1
        ours = _OURS.pack(
            _MAGIC,
            self._sequence,
            checkpoint.end,
            checkpoint.last_timestamp_ms,
            checkpoint.queue_count,
            checkpoint.entry_total,
            *checkpoint.key_position,
            checkpoint.is_clean,
        )
        time_ms, end = checkpoint.last_timestamp_ms, checkpoint.end
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if os.fstat(descriptor).st_size < _FILE_BYTES:
                self._files.allocate(descriptor, 0, _FILE_BYTES)
            self._files.pwrite(descriptor, _ROCKETMQ.pack(time_ms, time_ms, time_ms, end, end), 0)
            place = _PLACES[self._sequence % len(_PLACES)]
            self._files.pwrite(descriptor, ours + _CRC.pack(crc32(ours)), place)
            self._files.fdatasync(descriptor)
        finally:
            os.close(descriptor)


def _parse(content: bytes) -> tuple[int, Checkpoint | None]:
    if len(content) < _OURS.size + _CRC.size or _CRC.unpack_from(content, _OURS.size)[0] != crc32(
        content[: _OURS.size]
    ):
        return 0, None
    magic, sequence, end, time_ms, queue_count, entry_total, key_start, key_count, is_clean = _OURS.unpack_from(content)
    if magic != _MAGIC:
        return 0, None
    return sequence, Checkpoint(
        end=end,
        last_timestamp_ms=time_ms,
        queue_count=queue_count,
        entry_total=entry_total,
        key_position=(key_start, key_count),
        is_clean=is_clean,
    )
