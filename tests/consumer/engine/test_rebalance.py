from __future__ import annotations

import pytest

from consumer.engine.process_queue import ProcessQueue
from consumer.engine.rebalance import INTERVAL_MS, PULL_IDLE_MS_MAX, QueueChanges, RebalanceTimer, decide
from remoting.wire.bodies.message_queue import MessageQueue

NOW_MS = 1_000_000


def queue(number: int) -> MessageQueue:
    return MessageQueue("orders", "broker-a", number)


def owned(*numbers: int) -> dict[MessageQueue, ProcessQueue]:
    return {queue(number): ProcessQueue(queue(number), NOW_MS) for number in numbers}


@pytest.mark.parametrize(
    ("have", "want", "expected"),
    [
        pytest.param(
            [], [1, 0], QueueChanges(add=(queue(0), queue(1)), remove=()), id="a first member takes all, in order"
        ),
        pytest.param([0, 1], [0, 1], QueueChanges((), ()), id="nothing changes"),
        pytest.param([0, 1, 2], [0], QueueChanges(add=(), remove=(queue(1), queue(2))), id="another joined"),
        pytest.param([0], [1], QueueChanges(add=(queue(1),), remove=(queue(0),)), id="queues move"),
    ],
)
def test_a_rebalance_takes_and_releases_what_differs(have: list[int], want: list[int], expected: QueueChanges) -> None:
    changes = decide([queue(number) for number in want], owned(*have), NOW_MS)
    assert changes == expected
    assert changes.is_empty == (not expected.add and not expected.remove)


def test_a_queue_that_lost_its_loop_is_released_and_taken_again() -> None:
    have = owned(0, 1)
    have[queue(1)].last_pull_ms = NOW_MS - PULL_IDLE_MS_MAX - 1
    changes = decide([queue(0), queue(1)], have, NOW_MS)
    assert changes == QueueChanges(add=(queue(1),), remove=(), stuck=(queue(1),))


def test_a_dropped_queue_that_is_allocated_is_taken_again() -> None:
    have = owned(0)
    have[queue(0)].drop()
    assert decide([queue(0)], have, NOW_MS).stuck == (queue(0),)


def test_the_first_rebalance_is_due_at_once() -> None:
    assert RebalanceTimer().wait_ms(5, is_woken=False) == 0


@pytest.mark.parametrize(
    ("since_ms", "is_woken", "wait_ms"),
    [
        pytest.param(0, False, INTERVAL_MS, id="a quiet time waits for the timer"),
        pytest.param(100, True, 150, id="a notification right after a round waits for the gap"),
        pytest.param(5000, True, -4750, id="the first notification after a quiet time acts at once"),
    ],
)
def test_the_next_rebalance_is_due(since_ms: int, is_woken: bool, wait_ms: int) -> None:
    timer = RebalanceTimer()
    timer.rebalanced(1000, is_balanced=True)
    assert timer.wait_ms(1000 + since_ms, is_woken=is_woken) == wait_ms


def test_rebalances_that_fail_are_repeated_after_growing_pauses_until_one_succeeds() -> None:
    timer = RebalanceTimer()
    pauses = []
    for _ in range(6):
        timer.rebalanced(0, is_balanced=False)
        pauses.append(timer.wait_ms(0, is_woken=False))
    assert pauses == [1000, 2000, 4000, 5000, 5000, 5000]
    timer.rebalanced(0, is_balanced=True)
    assert timer.wait_ms(0, is_woken=False) == INTERVAL_MS
