"""Delivery latency by group and topic, on a table that was worked out by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from mqadmin.reports.spark_job import EVENT_DDL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_hours_are_added_up_by_topic_and_by_group_with_the_topic_of_most_messages_first(spark: SparkSession) -> None:
    from mqadmin.reports import delivery_steps  # needs PySpark

    first, second = (datetime(2026, 11, 22, hour, tzinfo=UTC) for hour in (14, 15))
    rows = [
        ("c", "billing", first, "orders", [10, 1000], [11, 1101], [60, 4]),
        ("c", "billing", second, "orders", [10], [11], [36]),
        ("c", "billing", second, "audit", [20], [21], [1]),
        ("c", "ledger", second, "orders", [0], [1], [7]),
        ("c", "many", second, "orders", [0], [1], [7]),
        *(("c", "many", second, f"t{number:02}", [0], [1], [1]) for number in range(30)),
    ]
    found = delivery_steps.delivery_days(spark.createDataFrame(rows, EVENT_DDL["deliveries"])).collect()
    by_group = {one.consumer_group: one for one in found}
    billing = by_group["billing"]
    assert (billing.delivered, billing.delivery_p50_ms, billing.delivery_p95_ms) == (101, 10, 10)
    assert billing.delivery_p99_ms == 1050
    assert [tuple(one) for one in billing.deliveries] == [("orders", 100, 10, 10, 1050), ("audit", 1, 20, 20, 20)]
    assert tuple(by_group["ledger"])[2:6] == (7, 0, 0, 0)
    names = [one.topic for one in by_group["many"].deliveries]
    assert (names[:2], len(names)) == (["orders", "t00"], delivery_steps.TOPICS_MAX)
