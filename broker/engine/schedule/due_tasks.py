"""Handlers of due tasks, one per kind (delay, timer, transaction, retention), and the guard around each.

The guard keeps one kind from stopping the others: after a failed step, its key is not due again for `BACKOFF_MS`, and
a handler whose agenda cannot be read counts as having nothing due until it can be read again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from remoting.wire.bodies.scheduler import AgendaEntry
from remoting.wire.bodies.watch import SchedulerKind

logger = logging.getLogger(__name__)

T = TypeVar("T")

# How long a key is not due again after its step failed, because of a full disk for example, or of damage.
BACKOFF_MS = 1_000


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a step: how many tasks were carried out, and how late the latest of them was; -1 for none."""

    count: int
    late_ms: int


class DueTaskHandler(Protocol):
    """Handles the due tasks of one kind. Carries out nothing that is not due by its own clock."""

    @property
    def next_due_ms(self) -> int | None:
        """Returns the earliest due time of the agenda, without building it: read with every lease request."""
        ...

    @property
    def waiting_count(self) -> int: ...

    def agenda(self) -> list[AgendaEntry]:
        """Returns an entry for each key with waiting tasks. While a step is still at work in the background, the due
        time is when the next step makes sense."""
        ...

    def carry_out(self, key: str, until_ms: int) -> StepResult:
        """Carries out a bounded number of tasks that are due by `until_ms`; the rest stays on the agenda.

        Does nothing for a key whose tasks are done by now. Raises KeyError for a key that this kind cannot have.
        """
        ...


class GuardedHandler:
    """Wraps a handler so that its failures don't reach the other kinds.

    `late_ms` is that of the last step that carried out anything, -1 before.
    """

    def __init__(self, kind: str, handler: DueTaskHandler, clock: Callable[[], int]) -> None:
        self.kind = kind
        self.late_ms = -1
        self._handler = handler
        self._clock = clock
        self._backoff_until: dict[str, int] = {}
        self._agenda_failed = False

    def carry_out(self, key: str, until_ms: int) -> StepResult:
        """Runs the handler's step. An exception is raised again; the key is not due for `BACKOFF_MS` then."""
        try:
            result = self._handler.carry_out(key, until_ms)
        except Exception:
            self._backoff_until[key] = self._clock() + BACKOFF_MS
            raise
        if result.count:
            self.late_ms = result.late_ms
        return result

    def agenda(self) -> list[AgendaEntry]:
        """Returns the handler's agenda; a key whose step failed is due no earlier than its backoff ends."""
        nothing: list[AgendaEntry] = []
        entries = self._or_default(self._handler.agenda, nothing)
        backoff_until = self._current_backoffs()
        for entry in entries:
            entry.next_due_ms = max(entry.next_due_ms, backoff_until.get(entry.key, 0))
        return entries

    @property
    def next_due_ms(self) -> int | None:
        if self._current_backoffs():
            return min((entry.next_due_ms for entry in self.agenda()), default=None)
        return self._or_default(lambda: self._handler.next_due_ms, None)

    @property
    def waiting_count(self) -> int:
        return self._or_default(lambda: self._handler.waiting_count, 0)

    @property
    def state(self) -> SchedulerKind:
        return SchedulerKind(
            kind=self.kind,
            next_due_ms=self._or_default(lambda: self._handler.next_due_ms, None) or 0,
            waiting_count=self.waiting_count,
            late_ms=self.late_ms,
        )

    def _current_backoffs(self) -> dict[str, int]:
        """Returns until when keys are not due, by key. A clock that was set back does not make that longer."""
        if self._backoff_until:
            now_ms = self._clock()
            self._backoff_until = {
                key: until_ms
                for key, until_ms in self._backoff_until.items()
                if now_ms < until_ms <= now_ms + BACKOFF_MS
            }
        return self._backoff_until

    def _or_default(self, read: Callable[[], T], default: T) -> T:
        """Returns `read()`, or `default` when it raises; of failures in a row the first is logged."""
        try:
            result = read()
        except Exception:
            if not self._agenda_failed:
                logger.exception(
                    "the agenda of the scheduler's kind %r cannot be read; the other kinds go on", self.kind
                )
            self._agenda_failed = True
            return default
        self._agenda_failed = False
        return result
