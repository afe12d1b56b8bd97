"""Retention inside the store: taking the oldest segment away, and what pointed to it (`CleanCommitLogService`).

    retention.json    {"log_min_offset": N, "log_end": N, "next_offsets": {topic: {queue id: N}}}

One removal at a time, of one segment:
1. `begin`, on the loop: the segment and the index files that only point below the new beginning are forgotten, so that
   nobody reads them any more.
2. `Removal.carry_out`, in any thread, for unlinking 256 MiB takes a while: `retention.json` says where the log begins
   now, and where each queue goes on that has no message left. Only when that is on the disk the segment's file goes,
   then, with the folder flushed, the index files, oldest first.
3. `finish`, on the loop.
A kill or a power cut anywhere between is made good by the next opening: segments below the recorded beginning are
removed, and index files left over go with the next removal. What was removed never comes back.

A segment may go when it is not the last one, when the checkpoint lies behind it, and when no pin holds it. A part lets
go of a record as soon as what takes its place is appended; that must be on the disk too before the record goes, so a
look at the pins counts once the log is flushed up to where it was then.
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

logger = logging.getLogger(__name__)

# The commit-log offset of the oldest record that a part still needs, None when it needs none. Asked before each
# deletion, so it must be cheap.
Pin = Callable[[], int | None]

FILE_NAME = "retention.json"
# Index files that go with one removal; what is left goes with the next.
INDEX_FILES_MAX = 256
_NO_PIN = 1 << 63


@dataclass(frozen=True, slots=True)
class OldSegment:
    """The oldest segment. `closed_ms`: the store timestamp of the first record behind it, None when there is none."""

    name: str
    byte_count: int
    closed_ms: int | None
    is_pinned: bool


@dataclass(frozen=True, slots=True)
class Removal:
    """What `begin` decided on; nothing in it is used by anybody else any more."""

    name: str
    state_path: Path
    state: dict[str, Any]
    segments: tuple[Path, ...]
    index_files: tuple[Path, ...]
    files: FileLayer

    def carry_out(self) -> None:
        """In any thread. Raises OSError; then what is left is removed with the next one."""
        self.files.replace_json(self.state_path, self.state)
        for path in self.segments:
            self.files.remove(path)
        self.files.sync_path(self.segments[0].parent)
        for path in self.index_files:
            self.files.remove(path)


class Retention:
    """Event loop only. `pins` are the parts' to add to."""

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
    ) -> None:
        """`flushed`: the end of what is on the disk. `is_checkpointed`: whether a start after a kill needs nothing
        below that commit-log offset; asks for a checkpoint if it does."""
        self.pins: list[Pin] = []
        self._path = folder / FILE_NAME
        self._log = log
        self._queues = queues
        self._keys = keys
        self._files = files
        self._flushed = flushed
        self._is_checkpointed = is_checkpointed
        self._running: Removal | None = None
        self._left_over: tuple[Path, ...] = ()
        # The last look at the pins (end of the log then, oldest record needed), and what the one before allows.
        self._look: tuple[int, int] | None = None
        self._free_until = 0

    @property
    def oldest(self) -> OldSegment | None:
        """What would go next; None while only one segment is left, or a removal runs. Raises OSError."""
        segment = self._log.oldest if self._running is None else None
        if segment is None:
            return None
        is_pinned = self._pinned_from() < segment.end
        return OldSegment(segment.path.name, segment.size_bytes, self._log.closed_ms(segment), is_pinned)

    def begin(self) -> Removal | None:
        """Forgets the oldest segment; None when it may not go (yet). What it returns is to be carried out."""
        segment = self._log.oldest if self._running is None else None
        if segment is None or not self._may_go(segment):
            return None
        path = self._log.forget_oldest(segment)
        minimum = self._log.min_offset
        state = {"log_min_offset": minimum, "log_end": self._log.end, "next_offsets": self._next_offsets(minimum)}
        self._running = Removal(
            path.name, self._path, state, (*self._left_over, path), tuple(self._index_files(minimum)), self._files
        )
        return self._running

    def finish(self, removal: Removal, error: OSError | None = None) -> None:
        """`removal` was carried out, or failed with `error`."""
        assert removal is self._running
        self._running = None
        self._left_over = removal.segments if error is not None else ()
        if error is not None:
            logger.error("the segment %s cannot be removed, it is tried again: %s", removal.name, error)
            return
        logger.info("the segment %s was removed; the log begins at %d", removal.name, self._log.min_offset)
        try:
            self._queues.forget_deletions_below(self._log.min_offset)
        except OSError as failure:
            logger.error("deleted topics are not forgotten: %s", failure)

    def _may_go(self, segment: Segment) -> bool:
        return self._is_checkpointed(segment.end) and self._free_now() >= segment.end

    def _free_now(self) -> int:
        """Up to where nothing is needed any more, also after a power cut."""
        if self._look is None:
            self._look = self._log.end, self._pinned_from()
        if self._flushed() >= self._look[0]:
            self._free_until, self._look = self._look[1], None
        # What is pinned anew since, because somebody went back, counts at once.
        return min(self._free_until, self._pinned_from())

    def _pinned_from(self) -> int:
        return min((pinned for pin in self.pins if (pinned := pin()) is not None), default=_NO_PIN)

    def _next_offsets(self, minimum: int) -> dict[str, dict[str, int]]:
        """Where those queues go on of which the log has no record any more."""
        emptied: dict[str, dict[str, int]] = {}
        for queue in self._queues:
            if queue.max_offset and queue.last_commit_log_offset < minimum:
                emptied.setdefault(queue.topic, {})[str(queue.queue_id)] = queue.max_offset
        return emptied

    def _index_files(self, minimum: int) -> list[Path]:
        paths: list[Path] = []
        sources: Sequence[ConsumeQueue | KeyIndex] = [self._keys, *self._queues]
        for source in sources:
            while len(paths) < INDEX_FILES_MAX and (path := source.drop_first_file(minimum)) is not None:
                paths.append(path)
        return paths


def read_retention(folder: Path, files: FileLayer) -> RetentionState:
    """What the last removal wrote. Raises StoreError when it is there and cannot be read."""
    found = files.read_json(folder / FILE_NAME)
    if found is None:
        return RetentionState()
    try:
        return RetentionState(int(found["log_min_offset"]), int(found["log_end"]), dict(found["next_offsets"]))
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{folder / FILE_NAME} is damaged ({error!r}); restore it from a copy") from error
