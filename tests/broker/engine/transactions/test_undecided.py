"""What is undecided, and when it is to be looked at."""

from __future__ import annotations

import pytest

from broker.engine.transactions import undecided as undecided_module
from broker.engine.transactions.undecided import Undecided
from tests.support.manual_clock import ManualClock

NOW_MS = 1_700_000_000_000
AGAIN_MS = NOW_MS + 10_000_000


@pytest.fixture
def clock():
    return ManualClock(NOW_MS)


@pytest.fixture
def undecided(clock):
    return Undecided(clock)


def test_the_most_overdue_is_taken_first(undecided):
    for queue_offset, due_ms in ((1, 30), (2, 10), (3, 20)):
        undecided.add(queue_offset, due_ms)

    assert undecided.next_due_ms == 10
    assert [undecided.take_due(25, AGAIN_MS) for _ in range(3)] == [(10, 2), (20, 3), None]


def test_what_was_taken_is_still_undecided_and_due_again(undecided):
    undecided.add(7, 10)
    undecided.take_due(10, 50)

    assert 7 in undecided
    assert undecided.take_due(50, AGAIN_MS) == (50, 7)


def test_what_was_decided_is_not_due_any_more(undecided):
    undecided.add(1, 10)
    undecided.add(2, 20)

    assert undecided.remove(1)
    assert not undecided.remove(1)
    assert undecided.next_due_ms == 20
    assert undecided.lowest == 2


def test_only_the_last_due_time_counts(undecided):
    undecided.add(1, 10)
    undecided.postpone(1, 40)
    undecided.postpone(2, 5)

    assert undecided.next_due_ms == 40
    assert len(undecided) == 1


def test_the_same_due_time_twice_is_due_once(undecided):
    undecided.add(1, 10)
    undecided.add(1, 10)

    undecided.take_due(10, AGAIN_MS)
    assert undecided.take_due(10, AGAIN_MS) is None


def test_a_clock_that_is_set_back_makes_nobody_wait_longer(undecided, clock):
    undecided.add(1, NOW_MS + 6_000)
    clock.advance_ms(1_000)
    assert undecided.next_due_ms == NOW_MS + 6_000

    clock.advance_ms(-86_400_000)
    assert undecided.next_due_ms == clock() + 5_000


def test_a_clock_that_is_set_ahead_makes_it_due(undecided, clock):
    undecided.add(1, NOW_MS + 6_000)
    clock.advance_ms(86_400_000)

    assert undecided.take_due(clock(), AGAIN_MS) == (NOW_MS + 6_000, 1)


def test_what_is_decided_before_it_is_due_leaves_no_trace(undecided, monkeypatch):
    monkeypatch.setattr(undecided_module, "STALE_MAX", 16)
    for queue_offset in range(10_000):
        undecided.add(queue_offset, NOW_MS + queue_offset)
        undecided.remove(queue_offset)

    assert len(undecided._heap) <= 18
