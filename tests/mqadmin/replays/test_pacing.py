"""Rates, with times as arguments."""

from __future__ import annotations

import random

import pytest

from mqadmin.replays.pacing import Pace


def sent_within(pace: Pace, begin_s: float, end_s: float, pauses: dict[int, float] | None = None) -> int:
    """How many were sent by a driver that waits as it is told, and stands still after some of its sends."""
    now_s, count = begin_s, 0
    while True:
        now_s += pace.wait_s(now_s)
        if now_s >= end_s:
            return count
        count += 1
        now_s += (pauses or {}).get(count, 0.0)


@pytest.mark.parametrize("rate", [1, 7, 100, 3000])
def test_a_rate_is_held_within_5_percent(rate: int) -> None:
    count = sent_within(Pace(rate, 0.0), 0.0, 60.0)
    assert count == pytest.approx(rate * 60, rel=0.05)


def test_a_rate_is_held_over_pauses_of_the_driver() -> None:
    chance = random.Random(11)
    pauses = {number: chance.uniform(0, 0.5) for number in range(0, 60_000, 100)}
    assert sent_within(Pace(100, 0.0), 0.0, 600.0, pauses) == pytest.approx(60_000, rel=0.05)


def test_never_more_is_sent_than_the_rate_since_the_beginning_allows() -> None:
    pace, now_s = Pace(50, 0.0), 0.0
    for count in range(1, 2000):
        now_s += pace.wait_s(now_s)
        assert count <= 50 * now_s + 1e-6
        now_s += 0.3 if count % 40 == 0 else 0.0


def test_a_rate_changed_meanwhile_is_the_rate_from_then_on() -> None:
    pace = Pace(100, 0.0)
    sent_within(pace, 0.0, 10.0)
    pace.change(10, 10.0)
    assert sent_within(pace, 10.0, 70.0) == pytest.approx(600, rel=0.05)


def test_a_long_pause_is_not_caught_up_at_once() -> None:
    pace = Pace(100, 0.0)
    waits = [pace.wait_s(3600.0) for _ in range(300)]
    assert waits.count(0.0) == 100
