"""Counts of the last minute, hour and day."""

from __future__ import annotations

import pytest

from broker.engine.stats import DailyTotals, Rates, Window
from tests.support.stores import ManualClock


class Seconds:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


def test_a_rate_counts_the_last_minute_only(seconds) -> None:
    rates: Rates[str] = Rates(seconds)
    for _ in range(120):
        rates.count("orders", 2)
        seconds.now += 1
    assert rates.per_second("orders") == pytest.approx(2.0, abs=0.1)
    seconds.now += 61
    assert rates.per_second("orders") == 0


def test_a_rate_of_a_young_broker_is_not_diluted(seconds) -> None:
    rates: Rates[str] = Rates(seconds)
    seconds.now += 5
    rates.count("orders", 50)
    assert rates.per_second("orders") == pytest.approx(10.0)


def test_keys_that_are_not_counted_are_forgotten(seconds) -> None:
    rates: Rates[str] = Rates(seconds)
    rates.count("orders")
    seconds.now += 600
    rates.count("refunds")
    assert [list(bucket) for bucket in rates._buckets.values()] == [["refunds"]]


def test_counts_are_added_up_over_an_hour_and_a_day(seconds) -> None:
    rates: Rates[str] = Rates(seconds)
    for _ in range(2 * 3_600 // 30):
        rates.count("orders")
        rates.count("refunds", 2)
        seconds.now += 30
    assert rates.sum_of("orders", Window.MINUTE) in (1, 2)
    assert rates.sum_of("orders", Window.HOUR) == pytest.approx(120, abs=20)
    assert rates.sum_of("orders", Window.DAY) == 240
    assert rates.sum_of_all(Window.DAY) == rates.total == 720
    seconds.now += 25 * 3_600
    assert [rates.sum_of("orders", window) for window in Window] == [0, 0, 0]
    assert rates.total == 720


def test_a_sum_counts_what_was_counted_a_moment_ago(seconds) -> None:
    rates: Rates[str] = Rates(seconds)
    seconds.now += 100
    rates.count("orders", 50)
    assert [rates.sum_of("orders", window) for window in Window] == [50, 50, 50]
    assert rates.per_second("orders") == pytest.approx(1.0, rel=0.2)


DAY_MS = 86_400_000


def test_a_midnight_moves_the_totals_on() -> None:
    clock = ManualClock()
    counted = [0]
    totals = DailyTotals(lambda: counted[0], clock)
    counted[0] = 5
    totals.roll()
    assert (totals.total_at_yesterday_midnight, totals.total_at_midnight, totals.total_now) == (0, 0, 5)
    clock.now_ms += DAY_MS
    totals.roll()
    counted[0] = 7
    totals.roll()
    assert (totals.total_at_yesterday_midnight, totals.total_at_midnight, totals.total_now) == (0, 5, 7)
    clock.now_ms += DAY_MS
    totals.roll()
    assert (totals.total_at_yesterday_midnight, totals.total_at_midnight, totals.total_now) == (5, 7, 7)
