"""Queues compared with each other, on tables worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.lag_rows import found, row

pytestmark = pytest.mark.spark


def test_the_queue_with_most_lag_is_hot_when_it_has_twice_an_even_one(history: Any) -> None:
    from mqadmin.reports import queue_steps  # needs PySpark

    rows = [
        *(row(0, 30, queue=queue, end=waiting, committed=0) for queue, waiting in enumerate((90, 5, 5))),
        *(row(0, 30, group="even", queue=queue, end=10, committed=0) for queue in range(3)),
        *(row(0, 30, group="idle", queue=queue, end=10, committed=10) for queue in range(3)),
    ]
    hot = queue_steps.hot_queues(queue_steps.queue_days(history(rows)))
    assert [(one.consumer_group, one.hot_queue.queue, one.hot_queue.skew) for one in hot.collect()] == [("g", 0, 2.7)]


def test_a_queue_is_weighed_by_the_time_in_which_it_is_known_and_a_topic_made_anew_is_no_flood(history: Any) -> None:
    from mqadmin.reports import queue_steps  # needs PySpark

    rows = [
        row(0, 30, end=1_000_000, committed=999_990),
        row(30, 60, end=1_000_005, committed=999_995),
        row(60, 90, end=1_000_005, committed=None),
        row(90, 120, end=1, committed=None),  # made anew
        row(120, 150, end=8, committed=None),
    ]
    assert found(queue_steps.queue_days(history(rows)), "lag_mean", "lag_max", "produced") == [(10.0, 10, 5 + 7)]


def test_the_queue_that_gets_twice_its_share_is_skewed_whatever_waits(history: Any) -> None:
    from mqadmin.reports import queue_steps  # needs PySpark

    rows = [
        *(row(0, 30, queue=queue, end=0, committed=0) for queue in range(4)),
        *(row(30, 60, queue=queue, end=end, committed=end) for queue, end in enumerate((10, 300, 10, 80))),
        *(row(0, 30, group="few", queue=queue, end=0, committed=0) for queue in range(2)),
        *(row(30, 60, group="few", queue=queue, end=end, committed=end) for queue, end in enumerate((0, 90))),
    ]
    skewed = queue_steps.skewed_queues(queue_steps.queue_days(history(rows)))
    assert [(one.consumer_group, one.skewed_queue.queue, one.skewed_queue.skew) for one in skewed.collect()] == [
        ("g", 1, 3.0)
    ]
