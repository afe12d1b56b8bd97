"""The scheduler's driver: decides what is due and has it carried out. One loop for both places it runs in.

Inside the broker (`--scheduler internal`) and in a Celery worker (`broker.tasks.drive`) the same `Driver` asks for the
lease, reads the agenda that comes with it, sends a step for each subject that is due and waits for the next one. Only
the link differs. The driver holds no state that matters: whoever takes over starts from the agenda.

Time is the broker's: each lease answer says what its clock shows, and a step never reaches beyond it. The waiting
is done by the broker too, which holds the lease request back until something is due, also what arrived meanwhile, or
until the lease must be renewed. So an idle driver sends two small requests a second, and a due message waits for
nobody's polling.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from remoting.wire.bodies.scheduler import AgendaEntry

logger = logging.getLogger(__name__)

# The lease: how long it holds without renewal, and how often it is renewed (a takeover takes at most the first).
LEASE_MS = 2_000
RENEW_INTERVAL_MS = 500
# After a driver failed by itself, before another one takes its place.
REFUSED_PAUSE_MS = 1_000
# A standby's request is held this long; it is answered at once when the lease becomes free.
STANDBY_INTERVAL_MS = 500


class StaleEpoch(Exception):
    """Another driver holds the lease by now."""


class StepRefused(Exception):
    """The broker could not carry out a step, e.g. because its disk is full; the text is its remark."""


@dataclass(frozen=True, slots=True)
class Step:
    """Carry out what is due on one subject up to `until_ms` (the broker's clock)."""

    kind: str
    key: str
    until_ms: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now; without steps, how long to wait before looking again."""

    steps: tuple[Step, ...]
    wait_ms: int


@dataclass(frozen=True, slots=True)
class LeaseAnswer:
    granted: bool
    epoch: int
    holder: str
    broker_now_ms: int
    agenda: tuple[AgendaEntry, ...]


class Link(Protocol):
    """The driver's way to a broker. Both raise ConnectionError, OSError or TimeoutError when it is not to be had."""

    async def lease(self, driver: str, epoch: int, lease_ms: int, wait_ms: int) -> LeaseAnswer: ...

    async def step(self, epoch: int, step: Step) -> int:
        """How many were carried out. Raises StaleEpoch, StepRefused."""
        ...


def plan(agenda: Iterable[AgendaEntry], now_ms: int, wait_max_ms: int) -> Plan:
    """Steps for all that is due at `now_ms`, the most overdue first; else the wait until the first falls due.

    >>> plan([AgendaEntry(kind="delay", key="3", next_due_ms=1_000, waiting_count=1)], 900, 500)
    Plan(steps=(), wait_ms=100)
    """
    entries = sorted(agenda, key=lambda entry: entry.next_due_ms)
    steps = tuple(Step(entry.kind, entry.key, now_ms) for entry in entries if entry.next_due_ms <= now_ms)
    if steps or not entries:
        return Plan(steps, 0 if steps else wait_max_ms)
    return Plan((), min(wait_max_ms, entries[0].next_due_ms - now_ms))


class Driver:
    """Drives one broker over `link`. `name` shows which process it is; `epoch` is 0 while another one drives."""

    def __init__(self, link: Link, name: str) -> None:
        self._link = link
        self._name = name
        self.epoch = 0

    async def run(self) -> None:
        """Until it is cancelled, or the link raises."""
        wait_ms = 0
        while True:
            wait_ms = await self.turn(wait_ms)

    async def turn(self, wait_ms: int) -> int:
        """One lease request, held by the broker for up to `wait_ms`, and the steps it calls for; the next wait."""
        answer = await self._link.lease(self._name, self.epoch, LEASE_MS, wait_ms)
        self.epoch = answer.epoch if answer.granted else 0
        if not answer.granted:
            return STANDBY_INTERVAL_MS
        todo = plan(answer.agenda, answer.broker_now_ms, RENEW_INTERVAL_MS)
        outcomes = await asyncio.gather(
            *(self._link.step(answer.epoch, step) for step in todo.steps), return_exceptions=True
        )
        for outcome in outcomes:
            self._heed(outcome)
        return todo.wait_ms

    def _heed(self, outcome: int | BaseException) -> None:
        match outcome:
            case int():
                pass
            case StaleEpoch():
                self.epoch = 0
            case StepRefused():
                # The broker leaves it alone for a while; what else is due goes on.
                logger.error("the broker refused a step: %s", outcome)
            case _:
                raise outcome
