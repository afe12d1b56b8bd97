"""The broker's side of the scheduler: the lease, the agenda, and the steps.

Tasks that are due at a certain time are grouped by kind; the table of kinds and their handlers is
`wiring/scheduling.py`. A driver, in a Celery worker or inside the broker, holds the lease and sends steps. While no
driver holds it, nothing is delivered; that is logged, and shown in the scheduler's state.

A step names a kind, a key and a time. The meaning of a key is up to the handler: a delay level, a range of times, a
file. A handler may need several steps, and several turns of the event loop, for what is due; meanwhile its agenda says
when the next step makes sense. A key whose step failed is not due again for a moment, so that it neither makes a busy
loop nor holds up the others.

A lease request with `wait_ms` is parked until something is due, so that the driver learns at once of messages that
arrive meanwhile; one that isn't granted is parked until the lease is free, so that a standby takes over at once. At
most one request per driver is parked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broker.engine.schedule.driver import LeaseAnswer, StaleEpoch
from broker.engine.schedule.due_tasks import DueTaskHandler, GuardedHandler, StepResult
from broker.engine.schedule.lease import Grant, Lease
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.watch import SchedulerState

Answer = Callable[[LeaseAnswer], None]

# A lease request is parked no longer, whatever it asks for: one of a driver that died must not stay for ever.
WAIT_MS_MAX = 30_000
# Lease requests that are parked at most, standbys' included; beyond it a request is answered at once.
PARKED_MAX = 256
# When no driver has held the lease for so long, that is logged and reported.
ABSENCE_MS = 3_000
# The same after the broker's start: longer, because workers that were started along with it take their time.
START_GRACE_MS = 15_000
DRIVER_CHECK_INTERVAL_S = 1.0
# What the complaints about drivers are about: their names are their own, as many as they like.
_SUBJECT = "scheduler"


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A driver's request for the lease. `epoch` is 0 when it has none; `wait_ms`: how long the answer may take."""

    driver: str
    epoch: int
    lease_ms: int
    wait_ms: int


@dataclass(slots=True, eq=False)
class _Parked:
    """A lease request that is not answered yet, by `until_s` at the latest.

    `epoch` is 0 for a standby, else the epoch under which its driver holds the lease.
    """

    request: LeaseRequest
    answer: Answer
    epoch: int
    until_s: float


class Scheduler:
    """Grants the lease, hands out the agenda and carries out steps.

    Callers: the processors of SCHEDULER_LEASE (29011) and SCHEDULER_STEP (29012), the internal driver, the handlers
    (`reschedule`), the runtime.
    """

    def __init__(
        self,
        handlers: Mapping[str, DueTaskHandler],
        clock: Callable[[], int],
        on_changed: Callable[[], None],
        complaints: ComplaintLog,
    ) -> None:
        """`on_changed` is called when the driver changes, and when there was none for `ABSENCE_MS` (`START_GRACE_MS`
        after the start). `complaints` gets a line when drivers come and go. `clock`: ms since the epoch."""
        self._handlers = {kind: GuardedHandler(kind, handler, clock) for kind, handler in handlers.items()}
        self._clock = clock
        self._on_changed = on_changed
        self._complaints = complaints
        self._lease = Lease(first_epoch=clock() // 1000)
        self._since_ms = clock()
        self._late_ms = -1
        self._parked: list[_Parked] = []
        self._answer_timer: asyncio.TimerHandle | None = None
        self._check_timer: asyncio.TimerHandle | None = None
        self._last_driven_s = 0.0
        self._is_absence_reported = False

    def start(self) -> None:
        """Begins to watch for a missing driver."""
        self._last_driven_s = self._now_s() + (START_GRACE_MS - ABSENCE_MS) / 1000
        self._check_driver()

    def stop(self) -> None:
        """Drops parked requests without an answer: drivers notice the end by their closed connections."""
        for timer in (self._answer_timer, self._check_timer):
            if timer is not None:
                timer.cancel()
        self._parked.clear()

    # the lease

    def ask(self, request: LeaseRequest, answer: Answer) -> None:
        """Grants, renews or refuses the lease; calls `answer` now or, while nothing is due, within `wait_ms`."""
        self._parked = [entry for entry in self._parked if entry.request.driver != request.driver]
        grant = self._ask_lease(request, request.epoch)
        wait_ms = min(request.wait_ms, WAIT_MS_MAX, request.lease_ms // 2)
        entry = _Parked(request, answer, grant.epoch if grant.granted else 0, self._now_s() + wait_ms / 1000)
        if grant.is_new or len(self._parked) >= PARKED_MAX or self._can_answer(entry):
            answer(self._answer(grant.granted))
        else:
            self._parked.append(entry)
        self._set_timer()

    def release(self, epoch: int) -> None:
        """Frees the lease of `epoch`, whose driver's connection was closed: a standby takes over now."""
        if self._lease.release(epoch):
            words = "the scheduler's driver of epoch %d has disconnected"
            self._complaints.info(_SUBJECT, "driver disconnected", words, epoch)
            self._changed()
            self._answer_parked()

    def forget(self, answer: Answer) -> None:
        """Drops the parked request of `answer`: its connection was closed."""
        self._parked = [entry for entry in self._parked if entry.answer is not answer]

    # steps

    def step(self, epoch: int, kind: str, key: str, until_ms: int) -> StepResult:
        """Has the handler of `kind` carry out one step.

        Raises StaleEpoch, KeyError for an unknown kind or key, StoreError, and whatever else the handler raises.
        """
        if not self._lease.allows(epoch, self._now_ms()):
            raise StaleEpoch(f"epoch {epoch} is not in force; the last one granted is {self._lease.epoch}")
        result = self._handlers[kind].carry_out(key, until_ms)
        if result.count:
            self._late_ms = result.late_ms
        return result

    def reschedule(self) -> None:
        """Sets the timer anew: the next due time has become earlier, so the driver's parked request is answered
        earlier."""
        self._set_timer()

    @property
    def state(self) -> SchedulerState:
        is_held = self._lease.is_held(self._now_ms())
        kinds = [handler.state for handler in self._handlers.values()]
        return SchedulerState(
            driver=self._lease.holder if is_held else "",
            epoch=self._lease.epoch,
            since_ms=self._since_ms,
            late_ms=self._late_ms,
            waiting_count=sum(kind.waiting_count for kind in kinds),
            kinds=kinds,
        )

    # parked requests

    def _ask_lease(self, request: LeaseRequest, epoch: int) -> Grant:
        grant = self._lease.ask(request.driver, epoch, request.lease_ms, self._now_ms())
        if grant.granted:
            self._last_driven_s = self._now_s()
        if grant.is_new:
            words = "%s drives the scheduler, epoch %d"
            self._complaints.info(_SUBJECT, "new driver", words, grant.holder, grant.epoch)
            self._changed()
        return grant

    def _answer(self, granted: bool) -> LeaseAnswer:
        agenda = [entry for handler in self._handlers.values() for entry in handler.agenda()] if granted else []
        return LeaseAnswer(granted, self._lease.epoch, self._lease.holder, self._clock(), tuple(agenda))

    def _is_driving(self, entry: _Parked) -> bool:
        return self._lease.allows(entry.epoch, self._now_ms())

    def _can_answer(self, entry: _Parked) -> bool:
        """Returns whether a request is to be answered now."""
        if self._now_s() >= entry.until_s:
            return True
        if entry.epoch == 0:
            return not self._lease.is_held(self._now_ms())
        return not self._is_driving(entry) or self._due_in_s() <= 0

    def _due_in_s(self) -> float:
        dues = [due for handler in self._handlers.values() if (due := handler.next_due_ms) is not None]
        return max(0, min(dues) - self._clock()) / 1000 if dues else float("inf")

    def _set_timer(self) -> None:
        """Sets the one timer to the next moment at which a parked request is to be answered."""
        if self._answer_timer is not None:
            self._answer_timer.cancel()
            self._answer_timer = None
        if not self._parked:
            return
        at_s = min(entry.until_s for entry in self._parked)
        if any(entry.epoch for entry in self._parked):
            at_s = min(at_s, self._now_s() + self._due_in_s())
        if any(not entry.epoch for entry in self._parked):
            at_s = min(at_s, self._lease.expires_ms / 1000)
        self._answer_timer = asyncio.get_running_loop().call_at(at_s, self._answer_parked)

    def _answer_parked(self) -> None:
        ready = [entry for entry in self._parked if self._can_answer(entry)]
        self._parked = [entry for entry in self._parked if entry not in ready]
        for entry in ready:
            granted = self._is_driving(entry) if entry.epoch else self._ask_lease(entry.request, 0).granted
            entry.answer(self._answer(granted))
        self._set_timer()

    # a missing driver

    def _check_driver(self) -> None:
        is_held = self._lease.is_held(self._now_ms())
        if is_held:
            self._last_driven_s = self._now_s()
        elif not self._is_absence_reported and self._now_s() - self._last_driven_s > ABSENCE_MS / 1000:
            words = "no driver holds the scheduler's lease: delayed messages and other due tasks wait"
            self._complaints.warn(_SUBJECT, "no driver", words)
            self._changed()
            self._is_absence_reported = True
        self._check_timer = asyncio.get_running_loop().call_later(DRIVER_CHECK_INTERVAL_S, self._check_driver)

    def _changed(self) -> None:
        self._since_ms = self._clock()
        self._is_absence_reported = False
        self._on_changed()

    def _now_ms(self) -> int:
        return int(self._now_s() * 1000)

    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()
