"""The broker's side: lease requests held and answered, steps carried out or refused, people told."""

from __future__ import annotations

import asyncio
import time

import pytest

from broker.engine.schedule import due_tasks as due_tasks_module
from broker.engine.schedule import scheduler as scheduler_module
from broker.engine.schedule.driver import Driver, StaleEpoch
from broker.engine.schedule.due_tasks import StepResult
from broker.engine.schedule.in_process_link import InProcessLink
from broker.engine.schedule.scheduler import LeaseRequest, Scheduler
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.scheduler import AgendaEntry
from tests.support.logged import lines_of
from tests.support.waiting import eventually

LONG_MS = 20_000
# A request may wait for half its lease. What comes within the 5 s of `eventually` came before the wait was over.
LONG_LEASE_MS, LONG_WAIT_MS = 30_000, 15_000


def clock() -> int:
    return time.time_ns() // 1_000_000


class ListHandler:
    """Waits with due times in a list; carrying out takes away what is due."""

    kind = "list"

    def __init__(self) -> None:
        self.dues: list[int] = []
        self.carried_at: list[int] = []

    @property
    def next_due_ms(self) -> int | None:
        return min(self.dues, default=None)

    @property
    def waiting_count(self) -> int:
        return len(self.dues)

    def agenda(self) -> list[AgendaEntry]:
        if not self.dues:
            return []
        return [AgendaEntry(kind=self.kind, key="k", next_due_ms=min(self.dues), waiting_count=len(self.dues))]

    def carry_out(self, key: str, until_ms: int) -> StepResult:
        if key != "k":
            raise KeyError(key)
        now_ms = clock()
        due = [due_ms for due_ms in self.dues if due_ms <= min(until_ms, now_ms)]
        self.dues = [due_ms for due_ms in self.dues if due_ms not in due]
        self.carried_at += [now_ms] * len(due)
        return StepResult(len(due), now_ms - min(due) if due else -1)


class Asked:
    """One lease request and, when it has come, its answer."""

    def __init__(
        self, scheduler: Scheduler, driver: str, epoch: int = 0, wait_ms: int = 0, lease_ms: int = LONG_LEASE_MS
    ):
        self.answer = None
        scheduler.ask(LeaseRequest(driver, epoch, lease_ms, wait_ms), self.set)

    def set(self, answer) -> None:
        assert self.answer is None, "answered twice"
        self.answer = answer


@pytest.fixture
def handler():
    return ListHandler()


@pytest.fixture
def told():
    return []


@pytest.fixture
async def scheduler(handler, told):
    scheduler = Scheduler({"list": handler}, clock, lambda: told.append(scheduler.state.driver), ComplaintLog())
    scheduler.start()
    yield scheduler
    scheduler.stop()


async def test_scheduler_grants_the_lease_at_once_with_the_agenda(scheduler, handler):
    handler.dues = [clock() + LONG_MS]
    before_ms = clock()
    asked = Asked(scheduler, "a", wait_ms=LONG_MS)

    assert asked.answer.granted
    assert [entry.key for entry in asked.answer.agenda] == ["k"]
    assert before_ms <= asked.answer.broker_now_ms <= clock()


async def test_scheduler_holds_a_renewal_until_its_wait_is_over(scheduler):
    epoch = Asked(scheduler, "a").answer.epoch
    started = time.monotonic()
    asked = Asked(scheduler, "a", epoch, wait_ms=60)

    assert asked.answer is None
    await eventually(lambda: asked.answer)
    assert asked.answer.granted
    assert time.monotonic() - started >= 0.059


async def test_scheduler_answers_a_held_renewal_when_something_falls_due(scheduler, handler):
    epoch = Asked(scheduler, "a").answer.epoch
    handler.dues = [clock() + 50]
    asked = Asked(scheduler, "a", epoch, wait_ms=LONG_WAIT_MS)

    await eventually(lambda: asked.answer)
    assert asked.answer.agenda[0].next_due_ms <= clock()


async def test_scheduler_wakes_a_held_renewal_for_what_came_in_meanwhile(scheduler, handler):
    epoch = Asked(scheduler, "a").answer.epoch
    asked = Asked(scheduler, "a", epoch, wait_ms=LONG_WAIT_MS)
    await asyncio.sleep(0)
    handler.dues = [clock() + 20]
    scheduler.reschedule()
    assert asked.answer is None

    await eventually(lambda: asked.answer)


async def test_scheduler_answers_at_once_what_is_due_already(scheduler, handler):
    epoch = Asked(scheduler, "a").answer.epoch
    handler.dues = [clock() - 1]

    assert Asked(scheduler, "a", epoch, wait_ms=LONG_WAIT_MS).answer.granted


async def test_scheduler_refuses_a_second_driver_and_names_the_first(scheduler):
    Asked(scheduler, "a")
    asked = Asked(scheduler, "b")

    assert (asked.answer.granted, asked.answer.holder, asked.answer.agenda) == (False, "a", ())


async def test_scheduler_gives_the_lease_to_a_standby_when_the_holder_is_gone(scheduler):
    epoch = Asked(scheduler, "a").answer.epoch
    standby = Asked(scheduler, "b", wait_ms=LONG_WAIT_MS)
    assert standby.answer is None

    scheduler.release(epoch)
    assert standby.answer.granted
    assert standby.answer.epoch > epoch


async def test_scheduler_logs_drivers_that_come_and_go_once_a_minute(handler, caplog):
    now_s = [0.0]
    complaints = ComplaintLog(clock=lambda: now_s[0])
    scheduler = Scheduler({"list": handler}, clock, lambda: None, complaints)
    for number in range(20):
        scheduler.release(Asked(scheduler, f"host-{number}").answer.epoch)
    came, went = lines_of(caplog, "remoting")
    assert came.startswith("host-0 drives the scheduler, epoch ")
    assert went.endswith(" has disconnected")
    now_s[0] = 60.0
    complaints.report_left_out()
    assert lines_of(caplog, "remoting")[2:] == [
        "scheduler, new driver: 19 more in 60 s were not logged",
        "scheduler, driver disconnected: 19 more in 60 s were not logged",
    ]


async def test_scheduler_gives_the_lease_to_a_standby_when_it_runs_out(scheduler):
    Asked(scheduler, "a", lease_ms=200)
    standby = Asked(scheduler, "b", wait_ms=LONG_WAIT_MS)
    assert standby.answer is None

    await eventually(lambda: standby.answer)
    assert standby.answer.granted


async def test_scheduler_gives_the_lease_to_one_of_two_standbys(scheduler):
    epoch = Asked(scheduler, "a").answer.epoch
    first, second = (Asked(scheduler, driver, wait_ms=LONG_WAIT_MS) for driver in "bc")
    scheduler.release(epoch)

    assert first.answer.granted
    assert not second.answer.granted
    assert scheduler.state.driver == "b"


async def test_scheduler_forgets_a_request_whose_driver_is_gone(scheduler):
    epoch = Asked(scheduler, "a").answer.epoch
    answers = []
    answer = answers.append
    scheduler.ask(LeaseRequest("b", 0, LONG_LEASE_MS, LONG_WAIT_MS), answer)
    scheduler.forget(answer)
    scheduler.release(epoch)

    assert answers == []
    assert scheduler.state.driver == ""


async def test_scheduler_carries_out_a_step_and_remembers_how_late_it_was(scheduler, handler):
    epoch = Asked(scheduler, "a").answer.epoch
    handler.dues = [clock() - 30]

    assert scheduler.step(epoch, "list", "k", clock()).count == 1
    assert scheduler.state.late_ms >= 30


async def test_scheduler_refuses_a_step_under_a_stale_epoch(scheduler, handler):
    first = Asked(scheduler, "a").answer.epoch
    scheduler.release(first)
    Asked(scheduler, "b")
    handler.dues = [clock() - 30]

    for epoch in (first, 0, first + 5):
        with pytest.raises(StaleEpoch):
            scheduler.step(epoch, "list", "k", clock())
    assert handler.carried_at == []


@pytest.mark.parametrize(("kind", "key"), [("timer", "k"), ("list", "other")])
async def test_scheduler_refuses_a_step_on_what_it_does_not_have(scheduler, kind, key):
    epoch = Asked(scheduler, "a").answer.epoch

    with pytest.raises(KeyError):
        scheduler.step(epoch, kind, key, clock())


@pytest.mark.slow
async def test_scheduler_tells_who_drives_and_that_nobody_does_once(scheduler, told, monkeypatch):
    monkeypatch.setattr(scheduler_module, "ABSENCE_MS", 100)
    monkeypatch.setattr(scheduler_module, "START_GRACE_MS", 200)
    monkeypatch.setattr(scheduler_module, "DRIVER_CHECK_INTERVAL_S", 0.02)
    scheduler.stop()
    scheduler.start()
    await eventually(lambda: told == [""])
    await asyncio.sleep(0.2)
    assert told == [""]

    Asked(scheduler, "a", lease_ms=200)
    assert told == ["", "a"]
    await eventually(lambda: told == ["", "a", ""])


async def test_scheduler_driven_from_inside_delivers_what_is_due_and_never_early(scheduler, handler):
    driving = asyncio.create_task(Driver(InProcessLink(scheduler), "internal").run())
    await asyncio.sleep(0.01)
    dues = [clock() + delay_ms for delay_ms in (5, 60, 61, 120)]
    for due_ms in dues:
        handler.dues.append(due_ms)
    scheduler.reschedule()

    await eventually(lambda: len(handler.carried_at) == len(dues))
    assert all(at_ms >= due_ms for at_ms, due_ms in zip(handler.carried_at, dues, strict=True))
    driving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driving


class BrokenHandler(ListHandler):
    """Cannot do what it has to; `is_mute`: cannot even say what that is."""

    kind = "broken"
    is_mute = False

    def agenda(self) -> list[AgendaEntry]:
        if self.is_mute:
            raise RuntimeError("the book is torn")
        return super().agenda()

    @property
    def next_due_ms(self) -> int | None:
        if self.is_mute:
            raise RuntimeError("the book is torn")
        return super().next_due_ms

    def carry_out(self, key: str, until_ms: int) -> StepResult:
        self.carried_at.append(clock())
        raise RuntimeError("the hands are tied")


@pytest.fixture
async def two_kinds():
    handlers = {"broken": BrokenHandler(), "list": ListHandler()}
    scheduler = Scheduler(handlers, clock, lambda: None, ComplaintLog())
    scheduler.start()
    driving = asyncio.create_task(Driver(InProcessLink(scheduler), "me").run())
    yield scheduler, handlers["broken"], handlers["list"]
    driving.cancel()
    await asyncio.gather(driving, return_exceptions=True)
    scheduler.stop()


async def test_a_carrier_that_raises_stops_nobody(two_kinds, monkeypatch):
    monkeypatch.setattr(due_tasks_module, "BACKOFF_MS", 600_000)
    scheduler, broken, sound = two_kinds
    broken.dues.append(clock())
    scheduler.reschedule()
    await eventually(lambda: broken.carried_at)
    for _ in range(3):
        sound.dues.append(clock() + 20)
        scheduler.reschedule()
        await eventually(lambda: not sound.dues)

    assert len(broken.carried_at) == 1


@pytest.mark.slow
async def test_a_carrier_that_raises_is_put_off(two_kinds):
    scheduler, broken, _ = two_kinds
    broken.dues.append(clock())
    scheduler.reschedule()
    await eventually(lambda: len(broken.carried_at) == 2)
    assert broken.carried_at[1] - broken.carried_at[0] >= due_tasks_module.BACKOFF_MS


async def test_a_carrier_that_cannot_say_what_is_due_stops_nobody(two_kinds):
    scheduler, broken, sound = two_kinds
    broken.is_mute = True
    sound.dues.append(clock() + 20)
    scheduler.reschedule()

    await eventually(lambda: not sound.dues)
    assert {kind.kind: kind.next_due_ms for kind in scheduler.state.kinds} == {"broken": 0, "list": 0}


async def test_the_state_tells_of_each_kind_when_it_is_due_and_how_late_it_was(two_kinds):
    scheduler, broken, sound = two_kinds
    sound.dues.append(clock() - 5_000)
    scheduler.reschedule()
    await eventually(lambda: not sound.dues)
    broken.dues.append(due_ms := clock() - 700)

    kinds = {kind.kind: kind for kind in scheduler.state.kinds}
    assert kinds["list"].late_ms >= 5_000
    assert kinds["list"].next_due_ms == 0
    assert (kinds["broken"].late_ms, kinds["broken"].next_due_ms, kinds["broken"].waiting_count) == (-1, due_ms, 1)
