"""Decides when a checkpoint is due and which files it covers: those that changed since the last one.

Event loop only. A plan is a snapshot taken between two appends; the flusher flushes its files, then writes it.
"""

from __future__ import annotations

from pathlib import Path

from broker.engine.store.checkpoint import Checkpoint
from broker.engine.store.commit_log import CommitLog
from broker.engine.store.consume_queue import ConsumeQueue
from broker.engine.store.flusher import CheckpointPlan
from broker.engine.store.key_index import KeyIndex
from broker.engine.store.queue_table import QueueTable


class Checkpointer:
    """Plans a checkpoint every `every_bytes` of the log or every `every_ms`, whichever comes first."""

    def __init__(self, log: CommitLog, queues: QueueTable, keys: KeyIndex, *, every_bytes: int, every_ms: int) -> None:
        self._log = log
        self._queues = queues
        self._keys = keys
        self._every_bytes = every_bytes
        self._every_ms = every_ms
        self._due_end = 0
        self._due_ms = 0
        self._changed: list[ConsumeQueue] = []
        self._queue_count = 0
        self._entry_total = 0
        # The first plan, after recovery, counts all queues; later ones add what changed.
        self._must_count_all = True

    def will_grow(self, queue: ConsumeQueue) -> None:
        """Notes that `queue` changes. Call it before an entry is put into the queue."""
        if queue.synced_offset == queue.max_offset:
            self._changed.append(queue)

    def is_due(self, end: int, now_ms: int) -> bool:
        """Tells whether a checkpoint is due, with the log's end at `end`."""
        return end >= self._due_end or now_ms >= self._due_ms

    def plan(self, end: int, now_ms: int, *, is_clean: bool = False) -> CheckpointPlan:
        """Returns a checkpoint at `end`, with the files that changed since the last plan."""
        files = self._count_all() if self._must_count_all else self._count_changed()
        files += self._keys.changed_files()
        self._changed.clear()
        self._due_end = end + self._every_bytes
        self._due_ms = now_ms + self._every_ms
        checkpoint = Checkpoint(
            end=end,
            last_timestamp_ms=now_ms,
            queue_count=self._queue_count,
            entry_total=self._entry_total,
            key_position=self._keys.position,
            tail_crc=self._log.tail_crc(end),
            is_clean=is_clean,
        )
        return CheckpointPlan(checkpoint, tuple(dict.fromkeys(files)))

    def _count_all(self) -> list[Path]:
        self._must_count_all = False
        self._queue_count = self._queues.queue_count
        self._entry_total = self._queues.entry_total
        return [path for queue in self._queues for path in queue.changed_files()]

    def _count_changed(self) -> list[Path]:
        files: list[Path] = []
        for queue in self._changed:
            self._entry_total += queue.max_offset - queue.synced_offset
            self._queue_count += 1 if queue.synced_offset == 0 else 0
            files += queue.changed_files()
        return files

    def count_all_again(self) -> None:
        """Makes a checkpoint due that counts all queues. Call it after queues were deleted."""
        self._must_count_all = True
        self._due_ms = 0
