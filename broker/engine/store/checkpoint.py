"""The checkpoint (RocketMQ's `StoreCheckpoint`): the end up to which the log and all derived files are on the disk.

    checkpoint, 4096 bytes
    |    0 | RocketMQ's part: 8 log, 8 queue, 8 index timestamp, 8 flushed offset, 8 confirmed offset |
    |  512 | our part: 8 magic, 8 sequence, 8 end, 8 timestamp, 8 queues, 8 entries, 16 key index, 4 CRC of the
    |      | log's last bytes, 8 identity of this file, 1 clean, 4 CRC |
    | 1024 | our part again; the two copies are written in turn, so that one is always complete |

At a start, the queue count and entry total show that consume queues were lost or truncated; the CRC of the log's last
bytes before `end`, that the log is older than the checkpoint; the identity (the file's inode), that the file is a copy.
A store that was copied while a broker wrote to it has files of different moments: its checkpoint proves nothing.
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
_OURS = struct.Struct(">8sqqqqqqqIQ?")
_CRC = struct.Struct(">I")
_MAGIC = b"mqachk02"
_PLACES = (512, 1024)


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The content of our part of the checkpoint file.

    `end` is a commit-log offset, `tail_crc` the CRC32 of the bytes before it (`CommitLog.tail_crc`). `is_clean`: the
    store was closed at `end`. `is_copy`: the file is not the one that the checkpoint was written to.
    """

    end: int = 0
    last_timestamp_ms: int = 0
    queue_count: int = 0
    entry_total: int = 0
    key_position: tuple[int, int] = (0, 0)
    tail_crc: int = 0
    is_clean: bool = False
    is_copy: bool = False


class CheckpointFile:
    """The file `checkpoint`: read once at the start, then written by one thread at a time.

    That is the flusher thread or, once it has ended, the event loop's.
    """

    def __init__(self, path: Path, files: FileLayer) -> None:
        self._path = path
        self._files = files
        self._sequence = 0

    def read(self) -> Checkpoint | None:
        """Returns the newest intact checkpoint, None when there is none."""
        try:
            with self._path.open("rb") as file:
                content, identity = file.read(), self._files.identity(file.fileno())
        except FileNotFoundError:
            return None
        newest: Checkpoint | None = None
        for place in _PLACES:
            sequence, checkpoint = _parse(content[place : place + _OURS.size + _CRC.size], identity)
            if checkpoint is not None and sequence > self._sequence:
                self._sequence, newest = sequence, checkpoint
        return newest

    def write(self, checkpoint: Checkpoint) -> None:
        """Writes `checkpoint` and flushes the file. Raises OSError."""
        self._sequence += 1
        time_ms, end = checkpoint.last_timestamp_ms, checkpoint.end
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if os.fstat(descriptor).st_size < _FILE_BYTES:
                self._files.allocate(descriptor, 0, _FILE_BYTES)
            self._files.pwrite(descriptor, _ROCKETMQ.pack(time_ms, time_ms, time_ms, end, end), 0)
            ours = self._packed(checkpoint, self._files.identity(descriptor))
            place = _PLACES[self._sequence % len(_PLACES)]
            self._files.pwrite(descriptor, ours + _CRC.pack(crc32(ours)), place)
            self._files.fdatasync(descriptor)
        finally:
            os.close(descriptor)

    def _packed(self, checkpoint: Checkpoint, identity: int) -> bytes:
        return _OURS.pack(
            _MAGIC,
            self._sequence,
            checkpoint.end,
            checkpoint.last_timestamp_ms,
            checkpoint.queue_count,
            checkpoint.entry_total,
            *checkpoint.key_position,
            checkpoint.tail_crc,
            identity,
            checkpoint.is_clean,
        )


def _parse(content: bytes, identity: int) -> tuple[int, Checkpoint | None]:
    """Returns the sequence number and the checkpoint; (0, None) when `content` is damaged or empty."""
    if len(content) < _OURS.size + _CRC.size or _CRC.unpack_from(content, _OURS.size)[0] != crc32(
        content[: _OURS.size]
    ):
        return 0, None
    magic, sequence, end, time_ms, *counts, tail_crc, written_to, is_clean = _OURS.unpack_from(content)
    queue_count, entry_total, key_start, key_count = counts
    if magic != _MAGIC:
        return 0, None
    return sequence, Checkpoint(
        end=end,
        last_timestamp_ms=time_ms,
        queue_count=queue_count,
        entry_total=entry_total,
        key_position=(key_start, key_count),
        tail_crc=tail_crc,
        is_clean=is_clean,
        is_copy=written_to != identity,
    )
