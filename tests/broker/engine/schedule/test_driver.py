"""What the driver does with an agenda, without a broker and without waiting."""

from __future__ import annotations

import pytest

from broker.engine.schedule.driver import (
    RENEW_INTERVAL_MS,
    STANDBY_INTERVAL_MS,
    Driver,
    LeaseAnswer,
    StaleEpoch,
    Step,
    StepRefused,
    plan,
)
from remoting.wire.bodies.scheduler import AgendaEntry

NOW_MS = 1_000_000


def entry(key: str, due_ms: int, kind: str = "delay") -> AgendaEntry:
    return AgendaEntry(kind=kind, key=key, next_due_ms=due_ms, waiting_count=1)


# agenda, keys of the steps, wait
PLANS = {
    "nothing waits": ([], [], 500),
    "something later than the longest wait": ([entry("1", NOW_MS + 9_000)], [], 500),
    "something soon": ([entry("1", NOW_MS + 70)], [], 70),
    "the soonest of several": ([entry("1", NOW_MS + 70), entry("2", NOW_MS + 30)], [], 30),
    "due this very millisecond": ([entry("1", NOW_MS)], ["1"], 0),
    "one millisecond before": ([entry("1", NOW_MS + 1)], [], 1),
    "the most overdue first": ([entry("1", NOW_MS - 5), entry("2", NOW_MS - 9)], ["2", "1"], 0),
    "only what is due": ([entry("1", NOW_MS - 5), entry("2", NOW_MS + 9)], ["1"], 0),
}


@pytest.mark.parametrize("case", PLANS.values(), ids=PLANS.keys())
def test_plan_of(case):
    agenda, keys, wait_ms = case

    todo = plan(agenda, NOW_MS, 500)

    assert [step.key for step in todo.steps] == keys
    assert todo.wait_ms == wait_ms


def test_plan_reaches_up_to_the_brokers_now_and_keeps_the_kind():
    assert plan([entry("g", NOW_MS - 5, kind="transaction")], NOW_MS, 500).steps == (Step("transaction", "g", NOW_MS),)


class ScriptedLink:
    """Answers lease requests from a list; notes everything it is asked."""

    def __init__(self, *answers: LeaseAnswer, step_error: Exception | None = None) -> None:
        self.answers = list(answers)
        self.step_error = step_error
        self.leases: list[tuple[int, int]] = []
        self.steps: list[tuple[int, Step]] = []

    async def lease(self, driver: str, epoch: int, lease_ms: int, wait_ms: int) -> LeaseAnswer:
        self.leases.append((epoch, wait_ms))
        return self.answers.pop(0)

    async def step(self, epoch: int, step: Step) -> int:
        self.steps.append((epoch, step))
        if self.step_error is not None:
            raise self.step_error
        return 1


def granted(*agenda: AgendaEntry, epoch: int = 7) -> LeaseAnswer:
    return LeaseAnswer(True, epoch, "me", NOW_MS, agenda)


REFUSED = LeaseAnswer(False, 6, "other", NOW_MS, ())


async def test_driver_steps_under_the_epoch_it_was_granted_and_asks_again_at_once():
    link = ScriptedLink(granted(entry("3", NOW_MS)))
    driver = Driver(link, "me")

    assert await driver.turn(0) == 0
    assert link.steps == [(7, Step("delay", "3", NOW_MS))]
    assert driver.epoch == 7


async def test_driver_renews_with_its_epoch_while_nothing_is_due():
    link = ScriptedLink(granted(), granted())
    driver = Driver(link, "me")

    wait_ms = await driver.turn(0)
    await driver.turn(wait_ms)

    assert link.leases == [(0, 0), (7, RENEW_INTERVAL_MS)]


async def test_driver_stands_by_without_a_step_where_another_drives():
    link = ScriptedLink(REFUSED)
    driver = Driver(link, "me")

    assert await driver.turn(0) == STANDBY_INTERVAL_MS
    assert link.steps == []
    assert driver.epoch == 0


async def test_driver_asks_anew_when_its_epoch_is_stale():
    link = ScriptedLink(granted(entry("3", NOW_MS)), REFUSED, step_error=StaleEpoch("stale"))
    driver = Driver(link, "me")

    await driver.turn(0)
    assert driver.epoch == 0
    await driver.turn(0)

    assert link.leases[1][0] == 0


async def test_driver_goes_on_driving_when_a_step_is_refused():
    link = ScriptedLink(granted(entry("3", NOW_MS)), step_error=StepRefused("the disk is full"))
    driver = Driver(link, "me")

    assert await driver.turn(0) == 0
    assert driver.epoch == 7


async def test_driver_lets_a_lost_connection_through():
    link = ScriptedLink(granted(entry("3", NOW_MS)), step_error=ConnectionError("gone"))

    with pytest.raises(ConnectionError):
        await Driver(link, "me").turn(0)
