"""Removes the oldest segment of the log, and the index files that point only into removed segments.

RocketMQ's `CleanCommitLogService` and `CleanConsumeQueueService`. `broker/engine/retention/` decides when.

    retention.json    {"log_min_offset": N, "log_end": N, "next_offsets": {topic: {queue id: N}}}

One removal at a time, of one segment:
1. `begin`, on the event loop: the log drops the segment, and the indexes drop the files that point only below the
   log's new first offset, so that no later read uses them.
2. `Removal.carry_out`, in any thread, because deleting 256 MiB takes a while: it writes the log's first offset, and the
   next offset of each queue without any message left, to `retention.json`. Once that is flushed, it deletes the
   segment's file and flushes the folder, then deletes the index files, the oldest first.
3. `finish`, on the event loop.

After a kill or a power cut in between, the next start deletes the segments below the recorded first offset; index files
that remain are deleted with the next removal. A removed message never appears again.

A segment may be removed when it is not the last one, the last checkpoint is at or behind its end, and no pin is below
its end. A part of the broker moves its pin past a record as soon as it has appended the copy that replaces the record.
The copy must be on the disk before the record is removed, so the value of a pin counts only once the log is flushed up
to the end that it had when the pin was read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker.engine.store.commit_log import CommitLog
from broker.engine.store.consume_queue import ConsumeQueue
from broker.engine.store.errors import StoreError
from broker.engine.store.files import FileLayer
from broker.engine.store.key_index import KeyIndex
from broker.engine.store.queue_table import QueueTable
from broker.engine.store.segment import Segment
from broker.engine.store.values import RetentionState
from remoting.complaints import ComplaintLog

logger = logging.getLogger(__name__)

# Returns the commit-log offset of the oldest record that a part of the broker still needs, None when it needs none.
# Called before each removal, so it must be cheap.
Pin = Callable[[], int | None]

FILE_NAME = "retention.json"
# Index files deleted in one removal; further ones are deleted in the next.
INDEX_FILES_MAX = 256
_NO_PIN = 1 << 63


@dataclass(frozen=True, slots=True)
class OldSegment:
    """The oldest segment. `closed_ms`: the store timestamp of the first record after it, None if there is none yet."""

    name: str
    byte_count: int
    closed_ms: int | None
    is_pinned: bool


@dataclass(frozen=True, slots=True)
class Removal:
    """One removal that `begin` has started: the files to delete, which no other part of the store uses any more."""

    name: str
    state_path: Path
    state: dict[str, Any]
    segments: tuple[Path, ...]
    index_files: tuple[Path, ...]
    files: FileLayer

    def carry_out(self) -> None:
        """Deletes the files, in any thread. Raises OSError; the next removal then deletes the remaining ones."""
        self.files.replace_json(self.state_path, self.state)
        for path in self.segments:
            self.files.remove(path)
        if self.segments:
            self.files.sync_path(self.segments[0].parent)
        for path in self.index_files:
            self.files.remove(path)


class Retention:
    """Removes segments, one at a time. Event loop only. `MessageStore.add_pins` extends `pins`."""

    def __init__(
        self,
        folder: Path,
        log: CommitLog,
        queues: QueueTable,
        keys: KeyIndex,
        files: FileLayer,
        *,
        flushed: Callable[[], int],
        is_checkpointed: Callable[[int], bool],
        complaints: ComplaintLog,
    ) -> None:
        """`flushed` returns the end up to which the log is on the disk. `is_checkpointed` tells whether the last
        checkpoint is at or behind a commit-log offset, and requests a checkpoint if not."""
        self.pins: list[Pin] = []
        self._path = folder / FILE_NAME
        self._log = log
        self._queues = queues
        self._keys = keys
        self._files = files
        self._flushed = flushed
        self._is_checkpointed = is_checkpointed
        self._complaints = complaints
        self._running: Removal | None = None
        self._undeleted: tuple[Path, ...] = ()
        # Pins that count once the log is flushed: (end of the log when they were read, the lowest one).
        self._unflushed_pins: tuple[int, int] | None = None
        # The lowest pin of the last reading that counts already.
        self._removable_until = 0

    @property
    def oldest(self) -> OldSegment | None:
        """Returns the segment to be removed next, None while there is only one or a removal runs. Raises OSError."""
        segment = self._log.oldest if self._running is None else None
        if segment is None:
            return None
        is_pinned = self._lowest_pin() < segment.end
        return OldSegment(segment.path.name, segment.size_bytes, self._log.closed_ms(segment), is_pinned)

    def begin(self) -> Removal | None:
        """Starts the removal of the oldest segment; None if it may not be removed (yet). Raises OSError.

        The caller must call `carry_out` of the returned removal, then `finish`.
        """
        segment = self._log.oldest if self._running is None else None
        if segment is None or not self._may_go(segment):
            return None
        path = self._log.detach_oldest(segment)
        return self._begin(f"segment {path.name}", (*self._undeleted, path), self._index_files(self._log.min_offset))

    def begin_index_files(self) -> Removal | None:
        """Starts the removal of index files that an earlier removal left, at most `INDEX_FILES_MAX` of them.

        Returns None if there are none, or a removal runs. The caller goes on as after `begin`.
        """
        index_files = self._index_files(self._log.min_offset) if self._running is None else []
        return self._begin("old index files", self._undeleted, index_files) if index_files else None

    def _begin(self, name: str, segments: tuple[Path, ...], index_files: list[Path]) -> Removal:
        minimum = self._log.min_offset
        state = {"log_min_offset": minimum, "log_end": self._log.end, "next_offsets": self._next_offsets(minimum)}
        self._running = Removal(name, self._path, state, segments, tuple(index_files), self._files)
        return self._running

    def finish(self, removal: Removal, error: OSError | None = None) -> None:
        """Ends `removal`, which was carried out or failed with `error`."""
        assert removal is self._running
        self._running = None
        self._undeleted = removal.segments if error is not None else ()
        if error is not None:
            # A tool may ask for the next one as often as it likes.
            words = "%s cannot be deleted; the next removal tries again: %s"
            self._complaints.error("retention", "not deleted", words, removal.name, error)
            return
        logger.info("removed: %s; the log begins at %d", removal.name, self._log.min_offset)
        try:
            self._queues.forget_deletions_below(self._log.min_offset)
        except OSError as failure:
            logger.error("deleted_topics.json cannot be shortened: %s", failure)

    def _may_go(self, segment: Segment) -> bool:
        """Tells whether the segment may be removed; requests a checkpoint if one is missing for that."""
        return self._is_checkpointed(segment.end) and self._free_now() >= segment.end

    def _free_now(self) -> int:
        """Returns the commit-log offset below which no record is needed any more, even after a power cut."""
        if self._unflushed_pins is None:
            self._unflushed_pins = self._log.end, self._lowest_pin()
        if self._flushed() >= self._unflushed_pins[0]:
            self._removable_until, self._unflushed_pins = self._unflushed_pins[1], None
        # A pin that has moved back since then counts at once.
        return min(self._removable_until, self._lowest_pin())

    def _lowest_pin(self) -> int:
        """Returns the lowest offset of all pins, a very large one if nothing is pinned."""
        return min((pinned for pin in self.pins if (pinned := pin()) is not None), default=_NO_PIN)

    def _next_offsets(self, minimum: int) -> dict[str, dict[str, int]]:
        """Returns, by topic and queue id, the next offsets of the queues of which the log has no record any more."""
        emptied: dict[str, dict[str, int]] = {}
        for queue in self._queues:
            if queue.max_offset and queue.last_commit_log_offset < minimum:
                emptied.setdefault(queue.topic, {})[str(queue.queue_id)] = queue.max_offset
        return emptied

    def _index_files(self, minimum: int) -> list[Path]:
        """Takes the files that point only below `minimum` out of the indexes; returns at most `INDEX_FILES_MAX`."""
        paths: list[Path] = []
        sources: Sequence[ConsumeQueue | KeyIndex] = [self._keys, *self._queues]
        for source in sources:
            while len(paths) < INDEX_FILES_MAX and (path := source.drop_first_file(minimum)) is not None:
                paths.append(path)
        return paths


def read_retention(folder: Path, files: FileLayer) -> RetentionState:
    """Reads `retention.json`; its defaults if there is none. Raises StoreError when it cannot be read."""
    found = files.read_json(folder / FILE_NAME)
    if found is None:
        return RetentionState()
    try:
        return RetentionState(int(found["log_min_offset"]), int(found["log_end"]), dict(found["next_offsets"]))
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{folder / FILE_NAME} is damaged ({error!r}); restore it from a copy") from error
