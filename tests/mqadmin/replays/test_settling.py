"""Looking for what has no outcome: how often a broker is asked that does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import Any

from mqadmin.observing.gateway import Failures, QueuePlace
from mqadmin.observing.gateway.counting import UNACKNOWLEDGED_S
from mqadmin.observing.gateway.sending import SEND_TIMEOUT_S
from mqadmin.replays.limits import LIMITS
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.settling import Found, look_for
from mqadmin.replays.states import Target
from tests.support.replay_gateway import ADDRESS, BROKER


class SilentBroker:
    """Answers nothing, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.messages = self.sending = self

    async def read(self, places: Collection[QueuePlace], failures: Failures) -> dict[QueuePlace, Any]:
        self.asked.append("read")
        failures.note(ADDRESS, TimeoutError("no answer"))
        return {}

    async def by_key(self, address: str, topics: Iterable[str], key: str, failures: Failures) -> list[Any]:
        self.asked.append("by key")
        failures.note(address, TimeoutError("no answer"))
        return []


def entries() -> list[ReplayEntry]:
    return [ReplayEntry(pk=n, broker_name=BROKER, topic="orders", queue_id=n % 4, queue_offset=0) for n in range(8)]


def test_a_broker_that_does_not_answer_is_asked_once() -> None:
    broker: Any = SilentBroker()
    job = ReplayJob(pk=1, group_name="billing", target=Target.ORIGIN)
    looking = look_for(broker, job, entries(), {BROKER: ADDRESS}, scan_max=100, is_over=lambda: False)
    found = asyncio.run(looking)
    assert broker.asked == ["read"]
    assert {one.state for one in found.values()} == {Found.NOT_YET}
    assert len(found) == 8


def test_when_the_time_is_over_further_queues_are_left_out() -> None:
    broker: Any = SilentBroker()
    job = ReplayJob(pk=1, group_name="billing", target=Target.ORIGIN)
    looking = look_for(broker, job, entries(), {BROKER: ADDRESS}, scan_max=100, is_over=lambda: True)
    assert set(asyncio.run(looking)) == {0, 4}


def test_what_has_no_outcome_is_looked_for_when_nothing_of_it_can_still_come() -> None:
    at_the_brokers_machine_s = LIMITS.send_within_s + SEND_TIMEOUT_S + UNACKNOWLEDGED_S
    assert at_the_brokers_machine_s < LIMITS.settle_after_s
