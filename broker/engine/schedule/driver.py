"""The scheduler's driver: decides what is due and tells the broker to carry it out.

The same `Driver` runs inside the broker (`--scheduler internal`) and in a Celery worker (`broker.tasks.drive`); only
the link differs. It asks for the lease, reads the agenda that comes with it, sends a step for each key that is due and
waits for the next one. A driver keeps no state that its successor would need: that one starts from the agenda.

Times are the broker's: each lease answer carries the time of its clock, and a step never reaches beyond it. The broker
does the waiting, too: it answers the lease request when something falls due, also a message that arrived meanwhile, or
when the lease must be renewed. So an idle driver sends two small requests a second, and a due message does not wait
for the next poll.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from remoting.wire.bodies.scheduler import AgendaEntry

logger = logging.getLogger(__name__)

# How long a lease lasts without renewal (a takeover takes no longer), and how often it is renewed.
LEASE_MS = 2_000
RENEW_INTERVAL_MS = 500
# How long the broker waits before it runs its internal driver again after a failure.
REFUSED_PAUSE_MS = 1_000
# How long the lease request of a standby is held; it is answered at once when the lease becomes free.
STANDBY_INTERVAL_MS = 500


class StaleEpoch(Exception):
    """Raised when a step's epoch is no longer in force: another driver holds the lease, or none."""


class StepRefused(Exception):
    """Raised when the broker could not carry out a step, e.g. because its disk is full; the text is its remark."""


@dataclass(frozen=True, slots=True)
class Step:
    """An order to carry out the tasks of one kind and key that are due by `until_ms` (the broker's clock)."""

    kind: str
    key: str
    until_ms: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps to send now; without steps, how long to wait before the next lease request is answered."""

    steps: tuple[Step, ...]
    wait_ms: int


@dataclass(frozen=True, slots=True)
class LeaseAnswer:
    """The broker's answer to a lease request. `epoch` and `holder` are those in force; the agenda is for the holder."""

    granted: bool
    epoch: int
    holder: str
    broker_now_ms: int
    agenda: tuple[AgendaEntry, ...]


class Link(Protocol):
    """The driver's connection to a broker. Both methods raise ConnectionError, OSError or TimeoutError when the broker
    cannot be reached."""

    async def lease(self, driver: str, epoch: int, lease_ms: int, wait_ms: int) -> LeaseAnswer: ...

    async def step(self, epoch: int, step: Step) -> int:
        """Sends a step, and returns how many tasks it carried out. Raises StaleEpoch, StepRefused."""
        ...


def plan(agenda: Iterable[AgendaEntry], now_ms: int, wait_max_ms: int) -> Plan:
    """Returns a step for each entry that is due at `now_ms`, the most overdue first; else how long until one is.

    >>> plan([AgendaEntry(kind="delay", key="3", next_due_ms=1_000, waiting_count=1)], 900, 500)
    Plan(steps=(), wait_ms=100)
    """
    entries = sorted(agenda, key=lambda entry: entry.next_due_ms)
    steps = tuple(Step(entry.kind, entry.key, now_ms) for entry in entries if entry.next_due_ms <= now_ms)
    if steps or not entries:
        return Plan(steps, 0 if steps else wait_max_ms)
    return Plan((), min(wait_max_ms, entries[0].next_due_ms - now_ms))


class Driver:
    """Drives one broker's scheduler over `link`.

    `name` says which process it runs in; `epoch` is 0 while it doesn't hold the lease.
    """

    def __init__(self, link: Link, name: str) -> None:
        self._link = link
        self._name = name
        self.epoch = 0

    async def run(self) -> None:
        """Drives until it is cancelled, or the link raises."""
        wait_ms = 0
        while True:
            wait_ms = await self.turn(wait_ms)

    async def turn(self, wait_ms: int) -> int:
        """Sends one lease request, which the broker holds for up to `wait_ms`, and the steps that are due; returns the
        next request's `wait_ms`."""
        answer = await self._link.lease(self._name, self.epoch, LEASE_MS, wait_ms)
        self.epoch = answer.epoch if answer.granted else 0
        if not answer.granted:
            return STANDBY_INTERVAL_MS
        planned = plan(answer.agenda, answer.broker_now_ms, RENEW_INTERVAL_MS)
        outcomes = await asyncio.gather(
            *(self._link.step(answer.epoch, step) for step in planned.steps), return_exceptions=True
        )
        for outcome in outcomes:
            self._handle_outcome(outcome)
        return planned.wait_ms

    def _handle_outcome(self, outcome: int | BaseException) -> None:
        match outcome:
            case int():
                pass
            case StaleEpoch():
                self.epoch = 0
            case StepRefused():
                # On the broker's agenda this key is not due again for a while; the other keys go on.
                logger.error("the broker refused a step: %s", outcome)
            case _:
                raise outcome
