from __future__ import annotations

import pytest

from consumer.engine.process_queue import ProcessQueue
from consumer.engine.statistics import Statistics
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.stored_message import StoredMessage
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


def test_what_is_consumed_is_told_with_how_long_it_took_since_it_was_stored_a_retry_since_it_was_born() -> None:
    told: list[tuple[str, int, list[int]]] = []
    clock = ManualClock(10_000)
    process_queue = ProcessQueue(MessageQueue("orders", "broker-a", 0), 0)
    fields = {"topic": "orders", "queue_id": 0, "born_timestamp_ms": 1_000, "store_timestamp_ms": 9_000}
    stored = [StoredMessage(queue_offset=0, **fields), StoredMessage(queue_offset=1, reconsume_times=2, **fields)]
    messages = process_queue.put(stored, 2)
    Statistics(clock).delivered("orders", messages)
    statistics = Statistics(clock, lambda topic, now_ms, took_ms: told.append((topic, now_ms, list(took_ms))))
    statistics.delivered("orders", messages)
    statistics.delivered("orders", [])
    assert told == [("orders", 10_000, [1_000, 9_000])]
