"""Recovers a store when it is opened: finds the end of the log and makes the indexes match the log.

1. After an orderly close the log ends at the checkpoint, and all files are trusted.
2. After a kill or a power cut the files are trusted up to the checkpoint (they were on the disk before it was written);
   every later record is verified and indexed again. Entries of the old indexes for later records are zeroed.
3. Without a usable checkpoint, or with indexes that do not match it, the whole log is verified and all indexes rebuilt.

Sound records after damaged bytes are kept. Damaged bytes are copied to `quarantine/` and reported; their entries in
the queues become holes, so that no message changes its queue offset. Garbage after the last sound record is zeroed,
so that it is never read as a record later. (Java: `CommitLog.recoverAbnormally`, which stops at the first bad record.)
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from pathlib import Path

from broker.engine.store.checkpoint import Checkpoint
from broker.engine.store.commit_log import CommitLog
from broker.engine.store.errors import IndexesStale
from broker.engine.store.files import FileLayer, data_chunks
from broker.engine.store.indexer import Indexer
from broker.engine.store.key_index import KeyIndex
from broker.engine.store.layout import RecordFields
from broker.engine.store.log_scan import LogEnd, keep_copy, scan_log
from broker.engine.store.queue_table import QueueTable
from broker.engine.store.values import Damage, RecoveryReport

logger = logging.getLogger(__name__)

# Damages beyond this number are logged but not reported: a list of thousands helps no operator.
_DAMAGES_REPORTED_MAX = 1000


@dataclass(slots=True)
class _Walk:
    """The results of one pass over the log, so far."""

    end: int = 0
    record_count: int = 0
    last_timestamp_ms: int = 0
    damages: list[Damage] = field(default_factory=list)
    torn: Damage | None = None


class Recovery:
    """Recovers one store; used once, when a `MessageStore` is opened, before the first append."""

    def __init__(
        self,
        folder: Path,
        log: CommitLog,
        queues: QueueTable,
        keys: KeyIndex,
        indexer: Indexer,
        files: FileLayer,
    ) -> None:
        self._folder = folder
        self._log = log
        self._queues = queues
        self._keys = keys
        self._indexer = indexer
        self._files = files

    def run(self, checkpoint: Checkpoint | None, *, was_aborted: bool) -> tuple[RecoveryReport, int]:
        """Recovers the store. Returns the report and the store timestamp of the last record.

        Raises OSError, StoreError.
        """
        started = time.monotonic()
        is_clean = checkpoint is not None and checkpoint.is_clean and not was_aborted and self._ends_at(checkpoint.end)
        try:
            start, walk = self._from_checkpoint(checkpoint, is_clean=is_clean)
            rebuilt = None
        except IndexesStale as reason:
            if self._log.capacity_end:
                logger.warning("store %s: the whole log is verified and indexed again: %s", self._folder, reason)
            start, walk = self._from_the_start()
            rebuilt = str(reason)
        self._log.open_at(walk.end, start)
        report = RecoveryReport(
            was_clean=is_clean,
            verified_from=start,
            end=walk.end,
            record_count=walk.record_count,
            torn=walk.torn,
            damages=tuple(walk.damages[:_DAMAGES_REPORTED_MAX]),
            rebuilt_indexes=rebuilt,
            duration_ms=(time.monotonic() - started) * 1000,
        )
        return report, walk.last_timestamp_ms

    def _ends_at(self, end: int) -> bool:
        """Tells whether the log has no bytes behind `end`."""
        segment = self._log.segment_of(end)
        if segment is None:
            return end == self._log.capacity_end
        return not any(self._log.read(segment, end, 8)) and segment.end == self._log.capacity_end

    def _from_checkpoint(self, checkpoint: Checkpoint | None, *, is_clean: bool) -> tuple[int, _Walk]:
        """Loads the indexes as of the checkpoint and, unless `is_clean`, indexes the later records (cases 1 and 2).

        Returns the checkpoint's end and the results. Raises IndexesStale when the checkpoint cannot be used.
        """
        if checkpoint is None:
            raise IndexesStale("there is no checkpoint")
        end = checkpoint.end
        if not self._log.min_offset <= end <= self._log.capacity_end:
            raise IndexesStale(f"the checkpoint is at {end}, outside the commit log")
        if self._log.tail_crc(end) != checkpoint.tail_crc:
            raise IndexesStale(f"the commit log before {end} is not the one that the checkpoint was written for")
        if checkpoint.is_copy and not is_clean:
            raise IndexesStale("the store was copied while it was open")
        self._queues.load(None if is_clean else end)
        self._keys.load(checkpoint.key_position, is_clean=is_clean)
        found = self._queues.queue_count, self._queues.entry_total
        if found != (checkpoint.queue_count, checkpoint.entry_total):
            expected = f"{checkpoint.entry_total} entries in {checkpoint.queue_count} queues"
            raise IndexesStale(f"the consume queues hold {found[1]} entries in {found[0]} queues, not {expected}")
        walk = _Walk(end=end, last_timestamp_ms=checkpoint.last_timestamp_ms)
        if not is_clean:
            self._walk(walk, end, expects_gaps=False)
        return end, walk

    def _from_the_start(self) -> tuple[int, _Walk]:
        """Deletes the indexes and rebuilds them from the whole log (case 3). Returns its start and the results."""
        self._queues.clear()
        self._keys.clear()
        start = self._log.min_offset
        walk = _Walk(end=start)
        self._walk(walk, start, expects_gaps=True)
        return start, walk

    def _walk(self, walk: _Walk, start: int, *, expects_gaps: bool) -> None:
        """Verifies and indexes all records from `start` on.

        Raises IndexesStale when entries are missing before a record and neither `expects_gaps` nor damage explains it.
        """
        for found in scan_log(self._log, start):
            match found:
                case RecordFields():
                    self._index_record(walk, found, may_leave_gap=expects_gaps or bool(walk.damages))
                case Damage():
                    self._set_aside(walk, found)
                case LogEnd():
                    self._end(walk, found)

    def _index_record(self, walk: _Walk, fields: RecordFields, *, may_leave_gap: bool) -> None:
        walk.record_count += 1
        walk.last_timestamp_ms = max(walk.last_timestamp_ms, fields.store_timestamp_ms)
        problem = self._indexer.index_again(fields, may_leave_gap=may_leave_gap)
        if problem is not None:
            damage = Damage(fields.commit_log_offset, fields.total_bytes, problem)
            self._set_aside(walk, damage)

    def _set_aside(self, walk: _Walk, damage: Damage) -> None:
        """Copies damaged bytes to `quarantine/` and adds them to the results."""
        kept_as = keep_copy(self._log, self._folder / "quarantine", damage)
        walk.damages.append(Damage(damage.commit_log_offset, damage.byte_count, damage.reason, kept_as))
        logger.error(
            "store %s: %d bytes at commit-log offset %d are set aside: %s",
            self._folder,
            damage.byte_count,
            damage.commit_log_offset,
            damage.reason,
        )

    def _end(self, walk: _Walk, end: LogEnd) -> None:
        """Sets the log's end, and copies and zeroes the bytes of an unfinished write behind it."""
        walk.end = end.commit_log_offset
        if not end.torn_bytes:
            return
        torn = Damage(end.commit_log_offset, end.torn_bytes, "an unfinished write at the end")
        kept_as = keep_copy(self._log, self._folder / "quarantine", torn)
        walk.torn = Damage(torn.commit_log_offset, torn.byte_count, torn.reason, kept_as)
        logger.warning(
            "store %s: %d bytes of an unfinished write are removed at commit-log offset %d",
            self._folder,
            torn.byte_count,
            walk.end,
        )
        self._zero_behind(walk.end)

    def _zero_behind(self, end: int) -> None:
        """Zeroes the segment of `end` from there on, and flushes it."""
        segment = self._log.segment_of(end)
        if segment is None:
            return
        segment.start_writing()
        for position, chunk in data_chunks(segment.path, end - segment.start, segment.size_bytes):
            if chunk.count(0) != len(chunk):
                segment.write(position, bytes(len(chunk)))
        segment.sync()
        segment.stop_writing()
