from __future__ import annotations

import pytest

from remoting.client.latency import BrokerLatencies, not_available_ms
from remoting.wire.bodies.message_queue import MessageQueue

A, B, C = (MessageQueue("orders", name, 0) for name in "abc")


@pytest.mark.parametrize(
    ("latency_ms", "duration_ms"),
    [
        (0, 0),
        (49, 0),
        (50, 0),
        (549, 0),
        (550, 2000),
        (1799, 2000),
        (1800, 5000),
        (3000, 6000),
        (5000, 10_000),
        (14_999, 10_000),
        (15_000, 30_000),
        (99_999, 30_000),
    ],
)
def test_the_table_says_for_how_long_a_slow_broker_is_avoided(latency_ms: int, duration_ms: int) -> None:
    assert not_available_ms(latency_ms) == duration_ms


def test_a_slow_broker_is_avoided_until_its_time_is_over_or_it_answers_quickly() -> None:
    latencies = BrokerLatencies()
    latencies.answered("a", 0.6, now_s=100.0)
    latencies.answered("b", 0.01, now_s=100.0)
    assert latencies.choose([A, B], None, 101.9) == [B]
    assert latencies.choose([A, B], None, 102.0) == [A, B]
    latencies.answered("a", 20.0, now_s=103.0)
    latencies.answered("a", 0.01, now_s=104.0)
    assert latencies.choose([A, B], None, 104.0) == [A, B]


def test_a_failure_counts_as_ten_seconds() -> None:
    latencies = BrokerLatencies()
    latencies.failed("a", 100.0, is_refusal=False)
    assert latencies.choose([A, B], None, 109.9) == [B]
    assert latencies.choose([A, B], None, 110.0) == [A, B]


def test_without_an_available_broker_a_reachable_one_is_chosen_and_else_any() -> None:
    latencies = BrokerLatencies()
    latencies.failed("a", 100.0, is_refusal=True)
    latencies.failed("b", 100.0, is_refusal=False)
    assert latencies.choose([A, B], None, 101.0) == [B]
    latencies.failed("b", 100.0, is_refusal=True)
    assert latencies.choose([A, B], None, 101.0) == [A, B]
    latencies.answered("a", 0.01, 102.0)
    assert latencies.choose([A, B, C], "c", 103.0) == [A]
    assert latencies.choose([C], "c", 103.0) == [C]
