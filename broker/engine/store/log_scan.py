"""Walking the commit log record by record, with every bit checked; over damage and to the true end.

Bytes that are no record are damage when a sound record lies behind them, however far: then they are stepped over.
Where nothing sound follows, the log ends. A record is only believed at the offset that it carries itself, so that
neither old bytes nor a record inside another one's body pass for one.
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

# Of one damage, and damages: kept for people to look at, but a bad disk is not copied as a whole.
_KEPT_BYTES_MAX = 16 * 1024 * 1024
_KEPT_FILES_MAX = 64


class LogEnd(msgspec.Struct):
    """The last thing a scan yields. `torn_bytes` of garbage lie behind the end: an unfinished write."""

    commit_log_offset: int
    torn_bytes: int


def scan_log(log: CommitLog, start: int) -> Iterator[RecordFields | Damage | LogEnd]:
    """Everything from `start` (a record's place) on: the fields of sound records, damages between them, and the end."""
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
    """Yields the sound records from `position` on; returns where they end, the segment's end after a blank."""
    local = position - segment.start
    with segment.mapped() as view:
        while True:
            size = sound_record_bytes(view, local, segment.start + local)
            if not size:
                return segment.end if is_blank(view, local) else segment.start + local
            yield read_record_fields(view, local)
            local += size


def _next_record(log: CommitLog, commit_log_offset: int) -> int | None:
    """The offset of the first sound record at or behind `commit_log_offset`."""
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
    """How many bytes from `position` to the last one that is not zero."""
    last = position
    for segment in log.segments_from(position):
        for base, chunk in data_chunks(segment.path, max(position - segment.start, 0), segment.size_bytes):
            used = len(chunk.rstrip(b"\0"))
            if used:
                last = segment.start + base + used
    return last - position


def keep_copy(log: CommitLog, folder: Path, damage: Damage) -> str | None:
    """Copies damaged bytes to `folder` for whoever wants to look; None when it holds 64 files or the copy fails."""
    folder.mkdir(exist_ok=True)
    if sum(1 for _ in folder.iterdir()) >= _KEPT_FILES_MAX:
        return None
    path = folder / f"{damage.commit_log_offset:020d}-{damage.byte_count}"
    left = min(damage.byte_count, _KEPT_BYTES_MAX)
    try:
        with path.open("wb") as copy:
            for segment in log.segments_from(damage.commit_log_offset):
                start = max(damage.commit_log_offset - segment.start, 0)
                taken = segment.read(start, min(left, segment.size_bytes - start))
                copy.write(taken)
                left -= len(taken)
                if not left:
                    break
    except OSError:
        path.unlink(missing_ok=True)
        return None
    return path.name
