from __future__ import annotations

import pytest

from consumer.engine.statistics import Statistics
from tests.support.manual_clock import ManualClock


def test_rates_are_those_of_the_last_minute_and_failures_those_of_the_last_hour() -> None:
    clock = ManualClock(0)
    statistics = Statistics(clock)
    for _ in range(30):
        statistics.consumed("orders", 10.0, ok=1)
    for _ in range(6):
        statistics.consumed("orders", 40.0, failed=1)
    statistics.pulled("orders", 36, 5.0)
    status = statistics.status("orders")
    assert (status.consume_ok_tps, status.consume_failed_tps, status.consume_failed_msgs) == (0.5, 0.1, 6)
    assert status.consume_rt == pytest.approx(15.0)
    assert (status.pull_tps, status.pull_rt) == (0.6, 5.0)
    clock.advance_ms(60_000)
    status = statistics.status("orders")
    assert (status.consume_ok_tps, status.consume_failed_msgs) == (0.0, 6)
    clock.advance_ms(3_600_000)
    assert statistics.status("orders").consume_failed_msgs == 0


def test_a_topic_without_traffic_has_zeros() -> None:
    assert Statistics(ManualClock(0)).status("orders").consume_rt == 0.0
