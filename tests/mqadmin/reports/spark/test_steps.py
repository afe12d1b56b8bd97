"""Each step on a table that was worked out by hand; the whole against a slow model in plain Python."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mqadmin.reports.history import LAG
from mqadmin.reports.spark_job import LAG_DDL

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

START_S = 1_795_305_600  # 2026-11-22T00:00Z
OBJECTIVE_MS = 60_000


def row(at: int, until: int, *, group: str = "g", topic: str = "orders", **values: Any) -> dict[str, Any]:
    """A row of the history with one queue, `at` and `until` in seconds after START_S; None: not known."""
    end, committed, since = values.get("end", 0), values.get("committed", 0), values.get("since")
    return {
        "cluster": "c",
        "consumer_group": group,
        "topic": topic,
        "at": datetime.fromtimestamp(START_S + at, UTC),
        "until": datetime.fromtimestamp(START_S + until, UTC),
        "verdict": "ok",
        "members": values.get("members", 1),
        "brokers": ["a"],
        "queues": [values.get("queue", 0)],
        "committed": [committed],
        "ends": [end],
        "waiting_since_ms": [0 if since is None else (START_S + since) * 1000],
        "doubt_ms": [0],
    }


@pytest.fixture
def history(spark: SparkSession, tmp_path: Path) -> Any:
    """Makes a history of rows, as Spark reads it from a file."""

    def make(rows: list[dict[str, Any]]) -> DataFrame:
        path = tmp_path / f"{uuid.uuid4().hex}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=LAG), path)
        return spark.read.schema(LAG_DDL).parquet(str(path))

    return make


def found(frame: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(one[name] for name in names) for one in frame.collect()), key=repr)


def seconds(ms: int) -> float:
    return ms / 1000 - START_S


def test_topic_spans_sum_the_queues_and_leave_unknown_what_one_of_them_is(history: Any) -> None:
    from mqadmin.reports import steps  # needs PySpark

    both = row(0, 30, end=10, committed=4, since=0) | {
        "brokers": ["a", "b"],
        "queues": [0, 0],
        "committed": [4, 20],
        "ends": [10, 15],
        "waiting_since_ms": [START_S * 1000, 0],
        "doubt_ms": [0, 0],
    }
    rows = [
        both,
        both | {"topic": "unknown", "committed": [4, None]},
        both | {"topic": "%RETRY%g", "ends": [0, 0], "committed": [None, None], "waiting_since_ms": [0, None]},
    ]
    names = ("topic", "kind", "lag", "end_total", "waiting_since")
    assert found(steps.topic_spans(history(rows)), *names) == [
        ("%RETRY%g", "retry", 0, 0, None),
        ("orders", "normal", 6, 25, START_S * 1000),
        ("unknown", "normal", None, 25, START_S * 1000),
    ]


def test_group_spans_add_topics_up_and_say_when_the_objective_is_missed(history: Any) -> None:
    """orders waits since second 10, so it is over from 70 on; refunds comes at 60, and is not known from 90 on."""
    from mqadmin.reports import steps  # needs PySpark

    rows = [
        row(0, 60, end=10, committed=0, since=10),
        row(60, 120, end=12, committed=0, since=10),
        row(60, 90, topic="refunds", end=5, committed=5),
        row(90, 100, topic="refunds", end=5, committed=None),
        row(0, 120, topic="%DLQ%g", end=3, committed=None),
    ]
    spans = steps.group_spans(steps.topic_spans(history(rows)), OBJECTIVE_MS)
    assert [(seconds(at), ms, lag, over) for at, ms, lag, over in found(spans, "at", "held_ms", "lag", "is_over")] == [
        (0, 60_000, 10, False),
        (60, 10_000, 12, False),
        (70, 20_000, 12, True),
        (100, 20_000, 12, True),
    ]


def test_flows_count_what_moved_and_not_what_was_reset(history: Any) -> None:
    from mqadmin.reports import steps  # needs PySpark

    rows = [
        row(0, 30, end=10, committed=4),
        row(30, 60, end=16, committed=9),
        row(60, 90, end=16, committed=2),  # reset to an earlier offset
        row(90, 120, end=17, committed=5),
        row(0, 30, topic="%RETRY%g", end=1, committed=1),
        row(30, 60, topic="%RETRY%g", end=4, committed=3),
        row(0, 30, topic="%DLQ%g", end=7, committed=None),
        row(30, 60, topic="%DLQ%g", end=9, committed=None),
    ]
    moved = steps.flows(steps.topic_spans(history(rows)))
    names = ("produced", "consumed", "retried", "dead", "members")
    assert found(moved, *names) == [(7, 5 + 3 + 2, 3, 2, 1)]


def test_group_days_weigh_by_time_and_name_the_worst_hour(history: Any) -> None:
    """Less than a hundredth of the time with lag: the 99th percentile is 0, the most is not."""
    from mqadmin.reports import steps  # needs PySpark

    rows = [
        row(0, 3600, end=100, committed=100),
        row(3600, 3650, end=600, committed=100, since=3500),
        row(3650, 6000, end=600, committed=600),
        row(0, 6000, group="left", end=5, committed=0, since=0, members=0),
    ]
    topics = steps.topic_spans(history(rows))
    spans = steps.group_spans(topics, OBJECTIVE_MS)
    days = steps.group_days(spans, steps.group_hours(spans, steps.flows(topics)))
    names = (
        "consumer_group",
        "known_ms",
        "over_ms",
        "lag_p50",
        "lag_p99",
        "lag_max",
        "drain_s",
        "produced",
        "consumed",
    )
    assert found(days, *names) == [
        ("g", 6_000_000, 50_000, 0, 0, 500, 0.0, 500, 500),
        ("left", 6_000_000, 5_940_000, 5, 5, 5, None, 0, 0),
    ]
    assert found(days, "consumer_group", "is_quiet", "is_abandoned") == [("g", False, False), ("left", True, True)]
    worst = {one.consumer_group: seconds(one.worst_hour) for one in days.collect()}
    assert worst == {"g": 3600, "left": 0}


def test_the_queue_with_most_lag_is_hot_when_it_has_twice_an_even_one(history: Any) -> None:
    from mqadmin.reports import steps  # needs PySpark

    rows = [
        *(row(0, 30, queue=queue, end=waiting, committed=0) for queue, waiting in enumerate((90, 5, 5))),
        *(row(0, 30, group="even", queue=queue, end=10, committed=0) for queue in range(3)),
        *(row(0, 30, group="idle", queue=queue, end=10, committed=10) for queue in range(3)),
    ]
    hot = steps.hot_queues(steps.queue_days(history(rows)))
    assert [(one.consumer_group, one.hot_queue.queue, one.hot_queue.skew) for one in hot.collect()] == [("g", 0, 2.7)]


def test_growth_stands_beside_what_was_a_week_before(history: Any) -> None:
    from mqadmin.reports import steps  # needs PySpark

    def days(rows: list[dict[str, Any]]) -> DataFrame:
        topics = steps.topic_spans(history(rows))
        spans = steps.group_spans(topics, OBJECTIVE_MS)
        return steps.group_days(spans, steps.group_hours(spans, steps.flows(topics)))

    before = days([row(0, 30, end=10, committed=10), row(30, 60, end=14, committed=14)])
    now = days([row(0, 30, end=10, committed=10), row(30, 60, end=18, committed=18), row(0, 60, group="new")])
    hot = now.select("cluster", "consumer_group").where("false").selectExpr("*", "struct(1 AS skew) AS hot_queue")
    grown = steps.with_growth(now, hot, before)
    assert found(grown, "consumer_group", "produced", "produced_before") == [("g", 8, 4), ("new", 0, None)]


def test_random_histories_have_the_same_figures_as_a_slow_model(history: Any) -> None:
    from mqadmin.reports import steps  # needs PySpark

    chance = random.Random(13)
    rows = []
    for group in ("a", "b", "c"):
        for topic in ("orders", "refunds"):
            at, end, committed = chance.randrange(20), 0, 0
            while at < 900:
                until = at + chance.randrange(1, 120)
                end += chance.randrange(50)
                committed = min(end, committed + chance.randrange(60))
                since = at - chance.randrange(100) if end > committed else None
                known = None if chance.random() < 0.1 else committed
                rows.append(row(at, until, group=group, topic=topic, end=end, committed=known, since=since))
                at = until if chance.random() < 0.8 else until + chance.randrange(60)
    spans = steps.group_spans(steps.topic_spans(history(rows)), OBJECTIVE_MS)
    by_second: dict[tuple[str, int], tuple[int, bool]] = {}
    for group, at, held, lag, over in found(spans, "consumer_group", "at", "held_ms", "lag", "is_over"):
        for second in range(int(seconds(at)), int(seconds(at + held))):
            by_second[group, second] = (lag, over)
    assert by_second == slow_model(rows)


def slow_model(rows: list[dict[str, Any]]) -> dict[tuple[str, int], tuple[int, bool]]:
    """Lag and whether the objective is missed, second by second."""
    seen: dict[tuple[str, int], list[tuple[int | None, bool]]] = {}
    for one in rows:
        at, until = (int(one[name].timestamp()) - START_S for name in ("at", "until"))
        (committed,), (end,), (since,) = one["committed"], one["ends"], one["waiting_since_ms"]
        lag = 0 if end == 0 else None if committed is None else end - committed
        for second in range(at, until):
            is_over = since > 0 and (START_S + second) * 1000 >= since + OBJECTIVE_MS
            seen.setdefault((one["consumer_group"], second), []).append((lag, is_over))
    return {
        key: (sum(lag for lag, _ in found), any(over for _, over in found))
        for key, found in seen.items()
        if all(lag is not None for lag, _ in found)
    }
