"""The locks of a member in virtual time, beside a broker of which a test says what it grants."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from consumer.engine.queue_locks import RENEW_INTERVAL_S, VALID_S, QueueLocks
from remoting.client.errors import ClientError, NotConnected
from remoting.wire.bodies.message_queue import MessageQueue
from tests.support.virtual_time import VirtualLoop, VirtualTime

ONE = MessageQueue("orders", "a", 0)
TWO = MessageQueue("orders", "a", 1)
FAR = MessageQueue("orders", "b", 0)


class ScriptedLocks:
    """`refused` are queues that another member holds, `away` brokers that do not answer."""

    def __init__(self) -> None:
        self.refused: set[MessageQueue] = set()
        self.away: set[str] = set()
        self.asked: list[tuple[str, list[MessageQueue]]] = []
        self.unlocked: list[MessageQueue] = []
        self.connections: dict[str, object] = {"a": object(), "b": object()}

    async def lock(self, broker_name: str, queues: list[MessageQueue]) -> list[MessageQueue]:
        self.asked.append((broker_name, sorted(queues)))
        self._check(broker_name)
        await asyncio.sleep(0.01)
        return [queue for queue in queues if queue not in self.refused]

    async def unlock(self, broker_name: str, queues: list[MessageQueue]) -> None:
        self._check(broker_name)
        self.unlocked += queues

    def master_connection(self, broker_name: str) -> object | None:
        return self.connections.get(broker_name)

    def _check(self, broker_name: str) -> None:
        if broker_name in self.away:
            raise NotConnected(broker_name, "away")


class Setup:
    def __init__(self) -> None:
        self.brokers = ScriptedLocks()
        self.lost: list[MessageQueue] = []
        self.renewals = 0
        # Queues in which the group is further on than this member.
        self.behind: set[MessageQueue] = set()
        self.locks = QueueLocks(
            self.brokers, "billing", lost=self.lost.extend, renewed=self._renewed, is_behind=self._is_behind
        )

    async def _is_behind(self, queue: MessageQueue) -> bool:
        return queue in self.behind

    def _renewed(self) -> None:
        self.renewals += 1


@pytest.fixture
def loop() -> VirtualLoop:
    return VirtualLoop(VirtualTime())


@pytest.fixture
def setup(loop: VirtualLoop) -> Iterator[Setup]:
    async def start() -> Setup:
        made = Setup()
        made.locks.start()
        return made

    made = loop.run(start())
    yield made
    loop.run(made.locks.stop())
    loop.close()


def holds(loop: VirtualLoop, setup: Setup, queue: MessageQueue) -> bool:
    async def ask() -> bool:
        return setup.locks.holds(queue)

    return bool(loop.run(ask()))


def test_a_lock_is_held_once_the_broker_has_granted_it(loop: VirtualLoop, setup: Setup) -> None:
    assert not holds(loop, setup, ONE)
    assert loop.run(setup.locks.lock(ONE)) is True
    assert holds(loop, setup, ONE)
    assert not holds(loop, setup, TWO)


def test_a_queue_that_another_member_has_is_not_locked(loop: VirtualLoop, setup: Setup) -> None:
    setup.brokers.refused = {ONE}
    assert loop.run(setup.locks.lock(ONE)) is False
    assert not holds(loop, setup, ONE)
    assert setup.lost == []


def test_an_unreachable_broker_is_an_error_of_locking(loop: VirtualLoop, setup: Setup) -> None:
    setup.brokers.away = {"a"}
    with pytest.raises(ClientError):
        loop.run(setup.locks.lock(ONE))


def test_locks_are_renewed_every_20_s_with_one_request_a_broker(loop: VirtualLoop, setup: Setup) -> None:
    for queue in (ONE, TWO, FAR):
        loop.run(setup.locks.lock(queue))
    setup.brokers.asked.clear()
    loop.pass_ms(10 * 60 * 1000)
    assert setup.brokers.asked[:2] == [("a", [ONE, TWO]), ("b", [FAR])]
    assert len(setup.brokers.asked) == 2 * setup.renewals
    assert 29 <= setup.renewals <= 600 / RENEW_INTERVAL_S
    assert holds(loop, setup, ONE)
    assert holds(loop, setup, FAR)


def test_a_lock_that_cannot_be_renewed_counts_for_30_s_and_again_when_the_broker_is_back(
    loop: VirtualLoop, setup: Setup
) -> None:
    loop.run(setup.locks.lock(ONE))
    setup.brokers.away = {"a"}
    loop.pass_ms(int(VALID_S * 1000) - 100)
    assert holds(loop, setup, ONE)
    loop.pass_ms(200)
    assert not holds(loop, setup, ONE)
    setup.brokers.away = set()
    setup.locks.renew_soon()
    loop.pass_ms(1_100)
    assert holds(loop, setup, ONE)
    assert setup.lost == []


def test_a_lock_counts_only_on_the_connection_that_it_was_granted_on(loop: VirtualLoop, setup: Setup) -> None:
    """A broker that was started again knows no locks: another member may ask first."""
    loop.run(setup.locks.lock(ONE))
    del setup.brokers.connections["a"]
    assert not holds(loop, setup, ONE)
    setup.brokers.connections["a"] = object()
    assert not holds(loop, setup, ONE)
    setup.locks.renew_soon()
    loop.pass_ms(200)
    assert holds(loop, setup, ONE)


@pytest.mark.parametrize("why", ["expired", "another connection"])
def test_a_queue_in_which_another_member_went_on_meanwhile_is_lost(loop: VirtualLoop, setup: Setup, why: str) -> None:
    """It had the lock, consumed and has gone; the broker grants the lock as if nothing had been."""
    for queue in (ONE, TWO):
        loop.run(setup.locks.lock(queue))
    setup.behind = {TWO}
    if why == "expired":
        setup.brokers.away = {"a"}
        loop.pass_ms(int(VALID_S * 1000) + 100)
        setup.brokers.away = set()
    else:
        setup.brokers.connections["a"] = object()
    setup.locks.renew_soon()
    loop.pass_ms(1_100)
    assert setup.lost == [TWO]
    assert holds(loop, setup, ONE)
    assert not holds(loop, setup, TWO)


def test_locks_are_made_sure_of_when_they_are_needed_at_once(loop: VirtualLoop, setup: Setup) -> None:
    loop.run(setup.locks.lock(ONE))
    setup.brokers.asked.clear()
    loop.run(setup.locks.make_sure())
    assert setup.brokers.asked == []
    setup.brokers.connections["a"] = object()
    loop.run(setup.locks.make_sure())
    assert setup.brokers.asked == [("a", [ONE])]
    assert holds(loop, setup, ONE)


def test_a_renewal_that_is_refused_loses_the_queue(loop: VirtualLoop, setup: Setup) -> None:
    for queue in (ONE, TWO):
        loop.run(setup.locks.lock(queue))
    setup.brokers.refused = {TWO}
    loop.pass_ms(int(RENEW_INTERVAL_S * 1000) + 100)
    assert setup.lost == [TWO]
    assert holds(loop, setup, ONE)
    assert not holds(loop, setup, TWO)
    setup.brokers.asked.clear()
    loop.pass_ms(int(RENEW_INTERVAL_S * 1000) + 1000)
    assert setup.brokers.asked == [("a", [ONE])]


def test_an_unlocked_queue_is_renewed_no_more(loop: VirtualLoop, setup: Setup) -> None:
    loop.run(setup.locks.lock(ONE))
    loop.run(setup.locks.unlock([ONE, TWO]))
    assert setup.brokers.unlocked == [ONE]
    assert not holds(loop, setup, ONE)
    setup.brokers.asked.clear()
    loop.pass_ms(60_000)
    assert setup.brokers.asked == []


def test_an_unlock_waits_for_a_renewal_that_is_under_way(loop: VirtualLoop, setup: Setup) -> None:
    """A broker with several threads may carry out the two in either order."""

    async def both() -> None:
        await setup.locks.lock(ONE)
        setup.locks.renew_soon()
        await asyncio.sleep(0.001)
        await setup.locks.unlock([ONE])

    loop.run(both())
    assert setup.renewals == 1
    assert not holds(loop, setup, ONE)


def test_renewals_out_of_turn_have_a_pause_between_them(loop: VirtualLoop, setup: Setup) -> None:
    async def impatient() -> None:
        for _ in range(1000):
            setup.locks.renew_soon()
            await asyncio.sleep(0.01)

    loop.run(impatient())
    assert setup.renewals <= 101
