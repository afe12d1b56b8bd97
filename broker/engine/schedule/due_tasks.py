"""Handlers of due tasks, one per kind (delay, timer, transaction, retention), and the guard around each.

The guard keeps one kind from stopping the others: after a step that failed, its key is left alone for a moment, and a
handler whose agenda cannot be read counts as having nothing due until it can.
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

# How long a key is left alone whose step failed: because of a full disk, say, or damage.
BACKOFF_MS = 1_000


@dataclass(frozen=True, slots=True)
class StepResult:
    """Says what one step did: how many tasks, and how late the latest was; -1 when none was done."""

    count: int
    late_ms: int


class DueTaskHandler(Protocol):
    """Handles the due tasks of one kind. Never acts before its own clock says so."""

    @property
    def next_due_ms(self) -> int | None:
        """Returns the earliest due time of the agenda, without building it: read with every lease request."""
        ...

    @property
    def waiting_count(self) -> int: ...

    def agenda(self) -> list[AgendaEntry]:
        """Returns an entry for each key with something waiting. While a step still works, its due time is the moment at
        which another step makes sense."""
        ...

    def carry_out(self, key: str, until_ms: int) -> StepResult:
        """Does a bounded part of what is due up to `until_ms`; the rest stays on the agenda.

        Does nothing for a key whose work is done by now. Raises KeyError for a key that this kind cannot have.
        """
        ...


class GuardedHandler:
    """Wraps a handler so that its failures stay its own. `late_ms` is that of the last step that did something, -1
    before."""

    def __init__(self, kind: str, handler: DueTaskHandler, clock: Callable[[], int]) -> None:
        self.kind = kind
        self.late_ms = -1
        self._handler = handler
        self._clock = clock
        self._backoff_until: dict[str, int] = {}
        self._agenda_failed = False

    def carry_out(self, key: str, until_ms: int) -> StepResult:
        """Runs the handler's step; a failure keeps the key from the agenda for `BACKOFF_MS`, and is raised."""
        try:
            result = self._handler.carry_out(key, until_ms)
        except Exception:
            self._backoff_until[key] = self._clock() + BACKOFF_MS
            raise
        if result.count:
            self.late_ms = result.late_ms
        return result

    def agenda(self) -> list[AgendaEntry]:
        nothing: list[AgendaEntry] = []
        entries = self._ask(self._handler.agenda, nothing)
        backoff_until = self._current_backoffs()
        for entry in entries:
            entry.next_due_ms = max(entry.next_due_ms, backoff_until.get(entry.key, 0))
        return entries

    @property
    def next_due_ms(self) -> int | None:
        if self._current_backoffs():
            return min((entry.next_due_ms for entry in self.agenda()), default=None)
        return self._ask(lambda: self._handler.next_due_ms, None)

    @property
    def waiting_count(self) -> int:
        return self._ask(lambda: self._handler.waiting_count, 0)

    @property
    def state(self) -> SchedulerKind:
        return SchedulerKind(
            kind=self.kind,
            next_due_ms=self._ask(lambda: self._handler.next_due_ms, None) or 0,
            waiting_count=self.waiting_count,
            late_ms=self.late_ms,
        )

    def _current_backoffs(self) -> dict[str, int]:
        """Returns the keys that are left alone now; a clock that was set back makes it last no longer."""
        if self._backoff_until:
            now_ms = self._clock()
            self._backoff_until = {
                key: until_ms
                for key, until_ms in self._backoff_until.items()
                if now_ms < until_ms <= now_ms + BACKOFF_MS
            }
        return self._backoff_until

    def _ask(self, question: Callable[[], T], otherwise: T) -> T:
        """Returns what `question` does, `otherwise` when it raises; the first of several failures is logged."""
        try:
            answer = question()
        except Exception:
            if not self._agenda_failed:
                logger.exception("the scheduler's kind %r cannot say what is due; the others go on", self.kind)
            self._agenda_failed = True
            return otherwise
        self._agenda_failed = False
        return answer
