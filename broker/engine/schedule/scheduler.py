"""The broker's side of the scheduler: the lease, the agenda, the steps, and who hears when something changes.

What must come at its time is grouped by kind; the table of kinds and their handlers is `wiring/scheduling.py`. A
driver, in a Celery worker or inside the broker, holds the lease and sends steps; without one nothing is delivered, and
people hear of it.

A step names a kind, a key and a moment. What a key means is the handler's: a delay level, a range of times, a file. A
handler may take several steps, and several turns of the loop, for what is due; meanwhile its agenda says when it wants
the next one. What fails is left alone for a moment, so that it neither makes a busy loop nor holds up the rest.

A lease request with `wait_ms` is parked until something is due, so that the driver learns at once of what came in
meanwhile; one that isn't granted is parked until the lease is free, so that a standby takes over at once. At most one
request per driver is parked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broker.engine.schedule.driver import LeaseAnswer, StaleEpoch
from broker.engine.schedule.due_tasks import DueTaskHandler, GuardedHandler, StepResult
from broker.engine.schedule.lease import Grant, Lease
from remoting.wire.bodies.watch import SchedulerState

logger = logging.getLogger(__name__)

Answer = Callable[[LeaseAnswer], None]

# A lease request waits no longer, whatever it asks for: a driver that is gone must not be kept for ever.
WAIT_MS_MAX = 30_000
# Drivers that wait at once, standbys included; beyond it a request is answered at once.
PARKED_MAX = 256
# So long may nobody drive before people are told.
ABSENCE_MS = 3_000
# Longer after the broker's start: workers that were started along with it take their time.
START_GRACE_MS = 15_000
LOOK_INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    driver: str
    epoch: int
    lease_ms: int
    wait_ms: int


@dataclass(slots=True, eq=False)
class _Parked:
    """`epoch` is 0 for a standby, else the one under which its driver drives."""

    request: LeaseRequest
    answer: Answer
    epoch: int
    until_s: float


class Scheduler:
    """Callers: the processors of 29011 and 29012, the internal driver, the handlers (`reschedule`), the runtime.

    `on_changed` is called when the driver changes, and when nobody drove for `ABSENCE_MS` (`START_GRACE_MS` at first).
    """

    def __init__(
        self,
        handlers: Mapping[str, DueTaskHandler],
        clock: Callable[[], int],
        on_changed: Callable[[], None],
    ) -> None:
        self._handlers = {kind: GuardedHandler(kind, handler, clock) for kind, handler in handlers.items()}
        self._clock = clock
        self._on_changed = on_changed
        self._lease = Lease(first_epoch=clock() // 1000)
        self._since_ms = clock()
        self._late_ms = -1
        self._parked: list[_Parked] = []
        self._serving: asyncio.TimerHandle | None = None
        self._looking: asyncio.TimerHandle | None = None
        self._last_driven_s = 0.0
        self._is_absence_told = False

    def start(self) -> None:
        """From here on somebody is expected to drive."""
        self._last_driven_s = self._now_s() + (START_GRACE_MS - ABSENCE_MS) / 1000
        self._look_for_driver()

    def stop(self) -> None:
        """Nobody gets an answer any more: drivers learn of the end from their connections."""
        for timer in (self._serving, self._looking):
            if timer is not None:
                timer.cancel()
        self._parked.clear()

    # the lease

    def ask(self, request: LeaseRequest, answer: Answer) -> None:
        """Grants, renews or refuses; answers now or, where there is nothing to do yet, within `wait_ms`."""
        self._parked = [entry for entry in self._parked if entry.request.driver != request.driver]
        grant = self._ask_lease(request, request.epoch)
        wait_ms = min(request.wait_ms, WAIT_MS_MAX, request.lease_ms // 2)
        entry = _Parked(request, answer, grant.epoch if grant.granted else 0, self._now_s() + wait_ms / 1000)
        if grant.is_new or len(self._parked) >= PARKED_MAX or self._is_ripe(entry):
            answer(self._answer(grant.granted))
        else:
            self._parked.append(entry)
        self._arm()

    def release(self, epoch: int) -> None:
        """The holder of `epoch` is gone, its connection closed: whoever stands by takes over now."""
        if self._lease.release(epoch):
            logger.info("the scheduler's driver of epoch %d is gone", epoch)
            self._changed()
            self._serve()

    def forget(self, answer: Answer) -> None:
        """Nobody waits for this answer any more."""
        self._parked = [entry for entry in self._parked if entry.answer is not answer]

    # steps

    def step(self, epoch: int, kind: str, key: str, until_ms: int) -> StepResult:
        """Raises StaleEpoch, KeyError for an unknown kind or key, StoreError, and whatever the handler does."""
        if not self._lease.allows(epoch, self._now_ms()):
            raise StaleEpoch(f"epoch {epoch} is not in force; the last one granted is {self._lease.epoch}")
        result = self._handlers[kind].carry_out(key, until_ms)
        if result.count:
            self._late_ms = result.late_ms
        return result

    def reschedule(self) -> None:
        """Something waits now where nothing did: the parked driver may have to wake earlier than planned."""
        self._arm()

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

    # waiting

    def _ask_lease(self, request: LeaseRequest, epoch: int) -> Grant:
        grant = self._lease.ask(request.driver, epoch, request.lease_ms, self._now_ms())
        if grant.granted:
            self._last_driven_s = self._now_s()
        if grant.is_new:
            logger.info("%s drives the scheduler, epoch %d", grant.holder, grant.epoch)
            self._changed()
        return grant

    def _answer(self, granted: bool) -> LeaseAnswer:
        agenda = [entry for handler in self._handlers.values() for entry in handler.agenda()] if granted else []
        return LeaseAnswer(granted, self._lease.epoch, self._lease.holder, self._clock(), tuple(agenda))

    def _is_driving(self, entry: _Parked) -> bool:
        return self._lease.allows(entry.epoch, self._now_ms())

    def _is_ripe(self, entry: _Parked) -> bool:
        """Whether a request gets its answer now."""
        if self._now_s() >= entry.until_s:
            return True
        if entry.epoch == 0:
            return not self._lease.is_held(self._now_ms())
        return not self._is_driving(entry) or self._due_in_s() <= 0

    def _due_in_s(self) -> float:
        dues = [due for handler in self._handlers.values() if (due := handler.next_due_ms) is not None]
        return max(0, min(dues) - self._clock()) / 1000 if dues else float("inf")

    def _arm(self) -> None:
        """One timer, set to the next moment at which a parked request gets its answer."""
        if self._serving is not None:
            self._serving.cancel()
            self._serving = None
        if not self._parked:
            return
        at_s = min(entry.until_s for entry in self._parked)
        if any(entry.epoch for entry in self._parked):
            at_s = min(at_s, self._now_s() + self._due_in_s())
        if any(not entry.epoch for entry in self._parked):
            at_s = min(at_s, self._lease.expires_ms / 1000)
        self._serving = asyncio.get_running_loop().call_at(at_s, self._serve)

    def _serve(self) -> None:
        ripe = [entry for entry in self._parked if self._is_ripe(entry)]
        self._parked = [entry for entry in self._parked if entry not in ripe]
        for entry in ripe:
            granted = self._is_driving(entry) if entry.epoch else self._ask_lease(entry.request, 0).granted
            entry.answer(self._answer(granted))
        self._arm()

    # who drives

    def _look_for_driver(self) -> None:
        is_held = self._lease.is_held(self._now_ms())
        if is_held:
            self._last_driven_s = self._now_s()
        elif not self._is_absence_told and self._now_s() - self._last_driven_s > ABSENCE_MS / 1000:
            logger.warning("nobody drives the scheduler: what is due waits")
            self._changed()
            self._is_absence_told = True
        self._looking = asyncio.get_running_loop().call_later(LOOK_INTERVAL_S, self._look_for_driver)

    def _changed(self) -> None:
        self._since_ms = self._clock()
        self._is_absence_told = False
        self._on_changed()

    def _now_ms(self) -> int:
        return int(self._now_s() * 1000)

    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()
