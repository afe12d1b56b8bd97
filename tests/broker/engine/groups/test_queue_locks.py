"""Queue locks: one holder per queue, for as long as it refreshes."""

from __future__ import annotations

from random import Random

import pytest

from broker.engine.groups.queue_locks import LOCK_LIFE_MS, QueueLocks
from remoting.wire.bodies.message_queue import MessageQueue
from tests.support.manual_clock import ManualClock

QUEUES = [MessageQueue("orders", "broker-a", queue_id) for queue_id in range(4)]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000)


@pytest.fixture
def locks(clock) -> QueueLocks:
    return QueueLocks(clock)


def test_a_queue_goes_to_who_asks_first_and_the_others_get_the_rest(locks) -> None:
    assert locks.lock("billing", QUEUES[:2], "a") == QUEUES[:2]
    assert locks.lock("billing", QUEUES, "b") == QUEUES[2:]
    assert locks.lock("mailing", QUEUES, "b") == QUEUES, "another group has its own locks"


def test_a_lock_that_is_refreshed_is_never_anothers(locks, clock) -> None:
    for _ in range(5):
        assert locks.lock("billing", QUEUES[:1], "a") == QUEUES[:1]
        clock.advance_ms(LOCK_LIFE_MS)
        assert locks.lock("billing", QUEUES[:1], "b") == []


def test_a_lock_expires_one_millisecond_after_its_life(locks, clock) -> None:
    locks.lock("billing", QUEUES[:1], "a")
    clock.advance_ms(LOCK_LIFE_MS)
    assert locks.has_unexpired("billing")
    clock.advance_ms(1)
    assert not locks.has_unexpired("billing")
    assert locks.lock("billing", QUEUES[:1], "b") == QUEUES[:1]
    assert locks.lock("billing", QUEUES[:1], "a") == []


def test_unlocking_takes_away_ones_own_only(locks) -> None:
    locks.lock("billing", QUEUES[:2], "a")
    locks.unlock("billing", QUEUES, "b")
    locks.unlock("nobody", QUEUES, "b")
    assert locks.lock("billing", QUEUES[:2], "b") == []
    locks.unlock("billing", QUEUES[:1], "a")
    assert locks.lock("billing", QUEUES[:2], "b") == QUEUES[:1]


def test_a_group_is_ordered_as_long_as_one_of_its_locks_is_unexpired(locks, clock) -> None:
    locks.lock("billing", QUEUES, "a")
    clock.advance_ms(LOCK_LIFE_MS)
    locks.lock("billing", QUEUES[1:2], "a")
    clock.advance_ms(LOCK_LIFE_MS)
    assert locks.has_unexpired("billing")
    assert not locks.has_unexpired("mailing")
    locks.unlock("billing", QUEUES, "a")
    assert not locks.has_unexpired("billing")


def test_expired_locks_are_forgotten(locks, clock) -> None:
    locks.lock("billing", QUEUES, "a")
    clock.advance_ms(LOCK_LIFE_MS + 1)
    locks.lock("mailing", QUEUES[:1], "a")
    locks.forget_expired()
    assert len(locks) == 1


def test_one_group_cannot_take_the_room_of_the_others(clock) -> None:
    locks = QueueLocks(clock, locks_max=3, per_group_max=2)
    assert locks.lock("billing", QUEUES, "a") == QUEUES[:2]
    assert locks.lock("mailing", QUEUES, "a") == QUEUES[:1]
    assert locks.lock("billing", QUEUES, "a") == QUEUES[:2], "what one holds is refreshed however full it is"
    clock.advance_ms(LOCK_LIFE_MS + 1)
    assert locks.lock("billing", QUEUES[2:], "a") == QUEUES[2:]


@pytest.mark.parametrize("seed", range(20))
def test_a_queue_never_has_two_holders_whatever_clients_do(seed) -> None:
    """Against a plain model: who was granted a queue keeps it until it unlocks or 60 s after its last refresh."""
    random = Random(seed)
    clock = ManualClock()
    locks = QueueLocks(clock)
    model: dict[MessageQueue, tuple[str, int]] = {}
    for _ in range(400):
        client, queues = random.choice("abc"), random.sample(QUEUES, random.randint(1, 4))
        if random.random() < 0.2:
            locks.unlock("billing", queues, client)
            model = {queue: held for queue, held in model.items() if queue not in queues or held[0] != client}
        else:
            now_ms = clock.now_ms
            free = [
                queue
                for queue in queues
                if queue not in model or model[queue][0] == client or now_ms - model[queue][1] > LOCK_LIFE_MS
            ]
            assert locks.lock("billing", queues, client) == free
            model |= dict.fromkeys(free, (client, now_ms))
        assert locks.has_unexpired("billing") == any(
            clock.now_ms - since <= LOCK_LIFE_MS for _, since in model.values()
        )
        clock.advance_ms(random.choice((0, 1, 5_000, 30_000, LOCK_LIFE_MS)))


def test_a_queue_that_is_named_twice_is_granted_once(locks) -> None:
    assert locks.lock("billing", [QUEUES[0], QUEUES[0]], "a") == QUEUES[:1]
    assert len(locks) == 1
