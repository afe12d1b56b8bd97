"""The rows of the scheduler's table: what carries out one kind of due things, and a guard around it.

The guard keeps one kind from stopping the others: a step that fails puts its subject off for a moment, and a carrier
that cannot even say what is due has nothing due until it can again.
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

# So long a subject whose step failed is put off: a full disk, say, or damage.
PUT_OFF_MS = 1_000


@dataclass(frozen=True, slots=True)
class Carried:
    """What one step did; `late_ms` of the latest, -1 when nothing was done."""

    count: int
    late_ms: int


class Carrier(Protocol):
    """Carries out one kind of due things. It never acts before its own clock says so."""

    @property
    def next_due_ms(self) -> int | None:
        """The earliest of the agenda, without building it: asked with every lease request."""
        ...

    @property
    def waiting_count(self) -> int: ...

    def agenda(self) -> list[AgendaEntry]:
        """Every key with something waiting. While a step still works, the moment at which another one makes sense."""
        ...

    def carry_out(self, key: str, until_ms: int) -> Carried:
        """One bounded step: some of what is due, the rest stays on the agenda. A key whose work is done by now is
        fine, and nothing. Raises KeyError for a key that it cannot have."""
        ...


class GuardedCarrier:
    """A carrier that answers every question. `late_ms` is that of the last step that did something, -1 before."""

    def __init__(self, kind: str, carrier: Carrier, clock: Callable[[], int]) -> None:
        self.kind = kind
        self.late_ms = -1
        self._carrier = carrier
        self._clock = clock
        # Key to the moment until which it is left alone.
        self._put_off: dict[str, int] = {}
        self._is_mute = False

    def carry_out(self, key: str, until_ms: int) -> Carried:
        """Raises what the carrier does."""
        try:
            carried = self._carrier.carry_out(key, until_ms)
        except Exception:
            self._put_off[key] = self._clock() + PUT_OFF_MS
            raise
        if carried.count:
            self.late_ms = carried.late_ms
        return carried

    def agenda(self) -> list[AgendaEntry]:
        nothing: list[AgendaEntry] = []
        entries = self._ask(self._carrier.agenda, nothing)
        put_off = self._current_put_off()
        for entry in entries:
            entry.next_due_ms = max(entry.next_due_ms, put_off.get(entry.key, 0))
        return entries

    @property
    def next_due_ms(self) -> int | None:
        if self._current_put_off():
            return min((entry.next_due_ms for entry in self.agenda()), default=None)
        return self._ask(lambda: self._carrier.next_due_ms, None)

    @property
    def waiting_count(self) -> int:
        return self._ask(lambda: self._carrier.waiting_count, 0)

    @property
    def state(self) -> SchedulerKind:
        return SchedulerKind(
            kind=self.kind,
            next_due_ms=self._ask(lambda: self._carrier.next_due_ms, None) or 0,
            waiting_count=self.waiting_count,
            late_ms=self.late_ms,
        )

    def _current_put_off(self) -> dict[str, int]:
        """A clock that was set back puts nothing off for longer."""
        if self._put_off:
            now_ms = self._clock()
            self._put_off = {
                key: until_ms for key, until_ms in self._put_off.items() if now_ms < until_ms <= now_ms + PUT_OFF_MS
            }
        return self._put_off

    def _ask(self, question: Callable[[], T], otherwise: T) -> T:
        """The carrier's answer; `otherwise` when it has none, which is told once."""
        try:
            answer = question()
        except Exception:
            if not self._is_mute:
                logger.exception("the scheduler's kind %r cannot say what is due; the others go on", self.kind)
            self._is_mute = True
            return otherwise
        self._is_mute = False
        return answer
