"""Rates over the last minute."""

from __future__ import annotations

import pytest

from broker.engine.stats import Rates


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
