"""Scheduled retention: the kind "retention" of the scheduler's table.

The agenda names the oldest segment, by its file's name, and the moment at which it is to go (`rules.py`). A step
removes that one segment and nothing else; one that names a segment that is gone already does nothing. A pass removes
at most `FILES_PER_PASS` with a pause between any two, as RocketMQ's `deletePhysicFilesInterval` and
`deleteFileBatchMax` say, so that the disk has time for others.

Without a driver nothing is removed here; what a full disk calls for is `disk_watch.py`, which needs none.
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
# What may not go yet, because a flush or a checkpoint is still to come, is tried again after that.
RETRY_MS = 1_000


class ScheduledRetention:
    """DueTaskHandler of the kind "retention"; a key is a segment's name.

    Callers: the scheduler. Affects the store through `remover`; calls `on_earlier_due` when a removal is over.
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
        found = self._next()
        return None if found is None else found[1]

    @property
    def waiting_count(self) -> int:
        """No message waits for it."""
        return 0

    def agenda(self) -> list[AgendaEntry]:
        found = self._next()
        if found is None:
            return []
        return [AgendaEntry(kind=KIND, key=found[0].name, next_due_ms=found[1], waiting_count=1)]

    def carry_out(self, key: str, until_ms: int) -> StepResult:
        """Raises KeyError for what names no segment, OSError."""
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
        if now_ms - self._not_before_ms > PAUSE_BETWEEN_PASSES_MS:
            self._pass_count = 0
        self._pass_count += 1
        is_over = self._pass_count >= FILES_PER_PASS
        self._not_before_ms = now_ms + (PAUSE_BETWEEN_PASSES_MS if is_over else PAUSE_BETWEEN_FILES_MS)
        if is_over:
            self._pass_count = 0

    def _next(self) -> tuple[OldSegment, int] | None:
        """The segment that goes next, and when; None while nothing can go."""
        oldest = None if self._remover.is_busy else self._store.retention.oldest
        if oldest is None or oldest.closed_ms is None or oldest.is_pinned:
            return None
        now_ms = self._clock()
        reserved_ms = self._config.file_reserved_hours * HOUR_MS
        moment = due_ms(oldest.closed_ms, reserved_ms, parse_hours(self._config.delete_when), now_ms)
        if moment is None:
            return None
        not_before_ms = self._not_before_ms
        # A clock that was set back must not hold anything up.
        if not_before_ms - now_ms > PAUSE_BETWEEN_PASSES_MS:
            not_before_ms = now_ms
        return oldest, max(moment, not_before_ms)
