"""Rebalances, dead letters and subscriptions that differ, on tables that were worked out by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from mqadmin.reports.spark_job import EVENT_DDL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def at(minute: int) -> datetime:
    return datetime(2026, 11, 22, 14, minute, tzinfo=UTC)


def test_churn_counts_events_moved_queues_and_lost_members(spark: SparkSession) -> None:
    from mqadmin.reports import event_steps  # needs PySpark

    kinds = [("joined", 0), ("queues_moved", 8), ("lost", 0), ("queues_moved", 4), ("left", 0), ("gone", 0)]
    rows = [("c", "g", at(number), kind, "m", moved, "watch") for number, (kind, moved) in enumerate(kinds)]
    rows.append(("c", "calm", at(9), "joined", "m", 0, "poll"))
    found = event_steps.churn(spark.createDataFrame(rows, EVENT_DDL["rebalances"])).collect()
    assert sorted(tuple(one)[1:] for one in found) == [("calm", 1, 0, 0), ("g", 6, 12, 2)]


def test_the_failures_that_killed_most_come_first_over_all_hours(spark: SparkSession) -> None:
    from mqadmin.reports import event_steps  # needs PySpark

    rows = [
        ("c", "g", at(0), "orders", "", "Timeout", "", 3),
        ("c", "g", at(0), "orders", "", "KeyError", "", 4),
        ("c", "g", at(1), "orders", "eu", "Timeout", "", 2),
        ("c", "g", at(1), "refunds", "", "", "", 1),
        ("c", "g", at(1), "refunds", "", "Never", "", 0),
        *(("c", "many", at(0), "orders", "", f"E{number}", "", 10) for number in range(7)),
    ]
    found = event_steps.top_failures(spark.createDataFrame(rows, EVENT_DDL["dead_letters"])).collect()
    failures = {one.consumer_group: [tuple(each) for each in one.failures] for one in found}
    assert failures["g"] == [("Timeout", "orders", 5), ("KeyError", "orders", 4), ("refunds", "refunds", 1)]
    assert [name for name, _topic, _dead in failures["many"]] == ["E0", "E1", "E2", "E3", "E4"]


def test_conflicts_are_added_up_and_named_by_the_longest(spark: SparkSession) -> None:
    from mqadmin.reports import event_steps  # needs PySpark

    rows = [
        ("c", "g", at(0), at(10), "expressions", "orders"),
        ("c", "g", at(10), at(25), "topics", ""),
        ("c", "g", at(40), at(50), "expressions", "refunds"),
    ]
    found = event_steps.conflict_days(spark.createDataFrame(rows, EVENT_DDL["conflicts"])).collect()
    assert [tuple(one)[1:] for one in found] == [("g", 35 * 60_000, "expressions")]
