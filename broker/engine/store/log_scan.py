"""Reads the commit log record by record, checks each one's CRC, skips damaged bytes and finds the end of the log.

A record is sound when its CRC matches and it lies at the commit-log offset that it contains: old bytes, or a record
inside the body of another one, are not accepted. Bytes without a sound record are damage, and skipped, if a sound
record follows anywhere behind them; if none follows, the log ends before them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import msgspec

from broker.engine.store.commit_log import CommitLog
from broker.engine.store.files import data_chunks
from broker.engine.store.layout import (
    MAGIC_POSITION,
    MAGIC_PREFIX,
    RecordFields,
    is_blank,
    read_record_fields,
    sound_record_bytes,
)
from broker.engine.store.segment import Segment
from broker.engine.store.values import Damage

# Bytes copied of one damaged range, and number of copies: they serve an inspection, and must not fill the disk.
_KEPT_BYTES_MAX = 16 * 1024 * 1024
_KEPT_FILES_MAX = 64


class LogEnd(msgspec.Struct):
    """The end of the log, the last item of a scan. Behind it lie `torn_bytes` of garbage from an unfinished write."""

    commit_log_offset: int
    torn_bytes: int


def scan_log(log: CommitLog, start: int) -> Iterator[RecordFields | Damage | LogEnd]:
    """Yields the fields of all sound records from `start` on, the damaged ranges between them, and the log's end.

    `start` is the commit-log offset of a record. Raises OSError.
    """
    position = start
    while True:
        segment = log.segment_of(position)
        if segment is not None:
            position = yield from _scan_segment(segment, position)
        if position >= log.capacity_end:
            yield LogEnd(position, 0)
            return
        if segment is not None and position == segment.end:
            continue
        behind = _next_record(log, position + 1)
        if behind is None:
            yield LogEnd(position, _garbage_bytes(log, position))
            return
        yield Damage(position, behind - position, "no sound record here, but behind it")
        position = behind


def _scan_segment(segment: Segment, position: int) -> Generator[RecordFields, None, int]:
    """Yields the sound records from `position` on. Returns the offset where they end: after a blank, the segment's."""
    local = position - segment.start
    with segment.mapped() as view:
        while True:
            size = sound_record_bytes(view, local, segment.start + local)
            if not size:
                return segment.end if is_blank(view, local) else segment.start + local
            yield read_record_fields(view, local)
            local += size


def _next_record(log: CommitLog, commit_log_offset: int) -> int | None:
    """Returns the offset of the first sound record at or behind `commit_log_offset`, None when there is none."""
    for segment in log.segments_from(commit_log_offset):
        start = max(commit_log_offset - segment.start, 0)
        with segment.mapped() as view:
            for position in _magic_positions(segment, start + MAGIC_POSITION):
                local = position - MAGIC_POSITION
                if sound_record_bytes(view, local, segment.start + local):
                    return segment.start + local
    return None


def _magic_positions(segment: Segment, start: int) -> Iterator[int]:
    for base, chunk in data_chunks(segment.path, start, segment.size_bytes, overlap_bytes=len(MAGIC_PREFIX) - 1):
        at = chunk.find(MAGIC_PREFIX)
        while at >= 0:
            yield base + at
            at = chunk.find(MAGIC_PREFIX, at + 1)


def _garbage_bytes(log: CommitLog, position: int) -> int:
    """Returns the number of bytes from `position` to the last one that is not zero, inclusive."""
    last = position
    for segment in log.segments_from(position):
        for base, chunk in data_chunks(segment.path, max(position - segment.start, 0), segment.size_bytes):
            used = len(chunk.rstrip(b"\0"))
            if used:
                last = segment.start + base + used
    return last - position


def keep_copy(log: CommitLog, folder: Path, damage: Damage) -> str | None:
    """Copies damaged bytes to a file in `folder`, to be inspected. Returns the file's name.

    Returns None when the folder has 64 files already or the copy fails.
    """
    folder.mkdir(exist_ok=True)
    if sum(1 for _ in folder.iterdir()) >= _KEPT_FILES_MAX:
        return None
    path = folder / f"{damage.commit_log_offset:020d}-{damage.byte_count}"
    left = min(damage.byte_count, _KEPT_BYTES_MAX)
    try:
        with path.open("wb") as copy:
            for segment in log.segments_from(damage.commit_log_offset):
                start = max(damage.commit_log_offset - segment.start, 0)
                chunk = segment.read(start, min(left, segment.size_bytes - start))
                copy.write(chunk)
                left -= len(chunk)
                if not left:
                    break
    except OSError:
        path.unlink(missing_ok=True)
        return None
    return path.name
