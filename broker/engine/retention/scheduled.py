"""Scheduled retention: removes expired segments as the scheduler's steps of the kind "retention" say.

The agenda names the oldest segment, by its file's name, and the time at which it is to be removed (`rules.py`). A step
removes the segment that it names; it does nothing if that is not the oldest one any more. One pass removes at most
`FILES_PER_PASS` segments with a pause between any two (RocketMQ's `deleteFileBatchMax`, `deletePhysicFilesInterval`),
so that the deletions do not slow down other disk access.

While no driver sends steps, no segment is removed here; `disk_space.py` needs no driver.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.engine.config import BrokerConfig
from broker.engine.retention.remover import Remover
from broker.engine.retention.rules import HOUR_MS, due_ms, parse_hours
from broker.engine.schedule.due_tasks import StepResult
from broker.engine.store.message_store import MessageStore
from broker.engine.store.retention import OldSegment
from remoting.wire.bodies.scheduler import AgendaEntry

KIND = "retention"
FILES_PER_PASS = 10
PAUSE_BETWEEN_FILES_MS = 100
# RocketMQ's `cleanResourceInterval`.
PAUSE_BETWEEN_PASSES_MS = 10_000
# The next try for a segment that may not be removed before a flush or a checkpoint.
RETRY_MS = 1_000


class ScheduledRetention:
    """The `DueTaskHandler` of the kind "retention"; a key is the name of a segment's file.

    Caller: the scheduler. Affects the store through `remover`; calls `on_earlier_due` when a removal has ended.
    """

    def __init__(
        self,
        store: MessageStore,
        remover: Remover,
        config: BrokerConfig,
        on_earlier_due: Callable[[], None],
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._remover = remover
        self._config = config
        self._on_earlier_due = on_earlier_due
        self._clock = clock
        self._not_before_ms = 0
        self._pass_count = 0

    @property
    def next_due_ms(self) -> int | None:
        """Returns when the next segment is to be removed, None if none is."""
        found = self._next()
        return None if found is None else found[1]

    @property
    def waiting_count(self) -> int:
        """Returns 0: no messages wait for retention."""
        return 0

    def agenda(self) -> list[AgendaEntry]:
        """Returns an entry for the segment to be removed next, or no entry."""
        found = self._next()
        if found is None:
            return []
        return [AgendaEntry(kind=KIND, key=found[0].name, next_due_ms=found[1], waiting_count=1)]

    def carry_out(self, key: str, until_ms: int) -> StepResult:
        """Starts the removal of the segment `key` if it is due. Raises KeyError if `key` names no segment, OSError."""
        if not key.isdecimal():
            raise KeyError(key)
        now_ms = self._clock()
        found = self._next()
        if found is None or found[0].name != key or found[1] > min(until_ms, now_ms):
            return StepResult(0, -1)
        if not self._remover.start(self._on_earlier_due):
            self._not_before_ms = now_ms + RETRY_MS
            return StepResult(0, -1)
        self._pause(now_ms)
        return StepResult(1, now_ms - found[1])

    def _pause(self, now_ms: int) -> None:
        """Sets the time before which no further segment is removed: the pause between files, or between passes."""
        if now_ms - self._not_before_ms > PAUSE_BETWEEN_PASSES_MS:
            self._pass_count = 0
        self._pass_count += 1
        is_over = self._pass_count >= FILES_PER_PASS
        self._not_before_ms = now_ms + (PAUSE_BETWEEN_PASSES_MS if is_over else PAUSE_BETWEEN_FILES_MS)
        if is_over:
            self._pass_count = 0

    def _next(self) -> tuple[OldSegment, int] | None:
        """Returns the segment to be removed next and its due time, None while no segment can be removed."""
        oldest = None if self._remover.is_busy else self._store.retention.oldest
        if oldest is None or oldest.closed_ms is None or oldest.is_pinned:
            return None
        now_ms = self._clock()
        reserved_ms = self._config.file_reserved_hours * HOUR_MS
        moment = due_ms(oldest.closed_ms, reserved_ms, parse_hours(self._config.delete_when), now_ms)
        if moment is None:
            return None
        not_before_ms = self._not_before_ms
        # If the clock was set back, the pause must not become longer.
        if not_before_ms - now_ms > PAUSE_BETWEEN_PASSES_MS:
            not_before_ms = now_ms
        return oldest, max(moment, not_before_ms)
