"""Each step on a table that was worked out by hand; the whole against a slow model in plain Python."""

from __future__ import annotations

import math
import random
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mqadmin.reports.history import LAG
from mqadmin.reports.spark_job import LAG_DDL, OBJECTIVE_DDL

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


def by_default(topics: DataFrame, *objectives: tuple[str, int, int, int, int | None]) -> DataFrame:
    """Judges by a minute, or by objectives: group, from, until (seconds after START_S), seconds, messages."""
    from mqadmin.reports import steps  # needs PySpark

    held = [
        (group, (START_S + at) * 1000, (START_S + until) * 1000, s * 1000, lag)
        for group, at, until, s, lag in objectives
    ]
    frame = topics.sparkSession.createDataFrame(held, OBJECTIVE_DDL)
    return steps.judged(topics, frame, OBJECTIVE_MS)


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
    names = ("topic", "kind", "lag", "ends", "waiting_since")
    assert found(steps.topic_spans(history(rows)), *names) == [
        ("%RETRY%g", "retry", 0, [0, 0], None),
        ("orders", "normal", 6, [10, 15], START_S * 1000),
        ("unknown", "normal", None, [10, 15], START_S * 1000),
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
    spans = steps.group_spans(by_default(steps.topic_spans(history(rows))))
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


MOVED = ("produced", "consumed", "retried", "dead")


def flows_by_hour(topics: DataFrame) -> dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]]:
    """By group and hour after START_S: what moved in it, and over gaps that ended in it (`MOVED`)."""
    from mqadmin.reports import steps  # needs PySpark

    return {
        (one.consumer_group, int(seconds(one.hour)) // 3600): (
            tuple(one[name] for name in MOVED),
            tuple(one[f"gap_{name}"] for name in MOVED),
        )
        for one in steps.flows(topics).collect()
    }


def test_what_moved_over_a_gap_belongs_to_no_hour_and_to_the_day(history: Any) -> None:
    """10 and 6 a sample; from 3600 on nothing is sampled for two hours, in which 900 came, 800 went and 5 died."""
    from mqadmin.reports import steps  # needs PySpark

    rows = [
        row(0, 1800, end=10, committed=4),
        row(1800, 3600, end=20, committed=10),
        row(10_800, 12_600, end=920, committed=810),
        row(12_600, 14_400, end=930, committed=816),
        row(0, 3600, topic="%RETRY%g", end=1, committed=1),
        row(10_800, 14_400, topic="%RETRY%g", end=8, committed=8),
        row(0, 3600, topic="%DLQ%g", end=7, committed=None),
        row(10_800, 12_600, topic="%DLQ%g", end=12, committed=None),
        row(12_600, 14_400, topic="%DLQ%g", end=13, committed=None),
    ]
    topics = steps.topic_spans(history(rows))
    assert flows_by_hour(topics) == {
        ("g", 0): ((10, 6, 0, 0), (0, 0, 0, 0)),
        ("g", 3): ((10, 6, 0, 1), (900, 807, 7, 5)),
    }
    spans = steps.group_spans(by_default(topics))
    days = steps.group_days(spans, steps.group_hours(spans, steps.flows(topics)))
    assert found(days, *MOVED) == [(920, 819, 7, 6)]
    assert found(days, "peak_in_s", "peak_out_s") == [(round(10 / 3600, 3), round(6 / 3600, 3))], "no false flood"


def test_first_retries_and_dead_letters_of_a_group_count_and_those_of_one_just_added_do_not(history: Any) -> None:
    """`added` is seen for the first time, with all it ever had; `away` was not sampled when its first ones died."""
    from mqadmin.reports import steps  # needs PySpark

    rows = [
        row(0, 60, end=10, committed=10),
        row(60, 120, end=14, committed=13),
        row(60, 90, topic="%RETRY%g", end=2, committed=1),
        row(90, 120, topic="%RETRY%g", end=3, committed=3),
        row(90, 120, topic="%DLQ%g", end=3, committed=None),
        row(90, 120, topic="refunds", end=5_000, committed=5_000),
        row(0, 60, group="added", end=800, committed=700),
        row(0, 60, group="added", topic="%RETRY%added", end=70, committed=60),
        row(0, 60, group="added", topic="%DLQ%added", end=50, committed=None),
        row(0, 60, group="away", end=10, committed=10),
        row(600, 660, group="away", end=17, committed=12),
        row(600, 660, group="away", topic="%DLQ%away", end=5, committed=None),
        row(0, 60, group="unknown", end=10, committed=10),
        row(60, 120, group="unknown", topic="%DLQ%unknown", end=None, committed=None),
        row(120, 180, group="unknown", topic="%DLQ%unknown", end=4, committed=None),
    ]
    topics = steps.topic_spans(history(rows))
    assert flows_by_hour(topics) == {
        ("g", 0): ((4, 3 + 3, 3, 3), (0, 0, 0, 0)),
        ("added", 0): ((0, 0, 0, 0), (0, 0, 0, 0)),
        ("away", 0): ((0, 0, 0, 0), (7, 2, 0, 5)),
        ("unknown", 0): ((0, 0, 0, 0), (0, 0, 0, 4)),
    }
    new = {(one.topic, seconds(one.began_at), seconds(one.group_until)) for one in steps.new_topics(topics).collect()}
    assert new == {
        ("%RETRY%g", 60, 60),
        ("%DLQ%g", 90, 120),
        ("%DLQ%away", 600, 60),
        ("%DLQ%unknown", 60, 60),
    }


def test_dead_letters_of_which_nothing_was_known_at_first_are_not_new(history: Any) -> None:
    """The sampler says of a topic that it is there before it knows how far that reaches."""
    from mqadmin.reports import steps  # needs PySpark

    rows = [
        row(0, 60, end=10, committed=10),
        queues(0, 60, ("", None, None), topic="%DLQ%g"),
        row(60, 120, topic="%DLQ%g", end=5_000, committed=None),
        row(120, 180, topic="%DLQ%g", end=5_001, committed=None),
    ]
    assert flows_by_hour(steps.topic_spans(history(rows))) == {("g", 0): ((0, 0, 0, 1), (0, 0, 0, 0))}


def test_what_moved_while_a_total_was_not_known_is_not_lost_and_in_no_hour(history: Any) -> None:
    """The offset of 30 to 60 is not known: from 4 to 9 it moved at some time between 30 and 60."""
    from mqadmin.reports import steps  # needs PySpark

    rows = [
        row(0, 30, end=10, committed=4),
        row(30, 60, end=16, committed=None),
        row(60, 90, end=18, committed=9),
        row(90, 120, end=21, committed=10),
        row(120, 150, end=21, committed=2),  # reset
        row(150, 180, end=21, committed=None),
        row(180, 210, end=2, committed=1),  # a new topic
        row(0, 30, topic="%DLQ%g", end=7, committed=None),
        row(30, 60, topic="%DLQ%g", end=None, committed=None),
        row(60, 90, topic="%DLQ%g", end=9, committed=None),
    ]
    assert flows_by_hour(steps.topic_spans(history(rows))) == {("g", 0): ((3, 1, 0, 0), (8, 5, 0, 2))}


def test_a_queue_without_any_message_hides_nothing_of_the_others(history: Any) -> None:
    from mqadmin.reports import steps  # needs PySpark

    def both(at: int, end: int, committed: int) -> dict[str, Any]:
        two = {"brokers": ["a", "a"], "queues": [0, 1], "waiting_since_ms": [0, 0], "doubt_ms": [0, 0]}
        return row(at, at + 30) | two | {"committed": [committed, None], "ends": [end, 0]}

    topics = steps.topic_spans(history([both(0, 5, 1), both(30, 9, 6)]))
    assert flows_by_hour(topics) == {("g", 0): ((4, 5, 0, 0), (0, 0, 0, 0))}


def queues(at: int, until: int, *offsets: tuple[str, int | None, int | None], topic: str = "orders") -> dict[str, Any]:
    """A row with one queue of each broker: its name, end and committed offset."""
    names, ends, committed = ([one[place] for one in offsets] for place in range(3))
    nothing = [0] * len(offsets)
    return row(at, until, topic=topic) | {
        "brokers": names,
        "queues": nothing,
        "ends": ends,
        "committed": committed,
        "waiting_since_ms": nothing,
        "doubt_ms": nothing,
    }


def test_a_broker_that_is_away_and_comes_back_is_no_flood(history: Any) -> None:
    """10 came to a, and 20 to b while it was away; c, which nobody saw before, adds nothing."""
    from mqadmin.reports import steps  # needs PySpark

    rows = [
        queues(0, 30, ("a", 1000, 900), ("b", 5_000_000, 4_999_990)),
        queues(30, 60, ("a", 1000, 900)),
        queues(60, 90, ("b", 5_000_020, 5_000_000), ("a", 1010, 905), ("c", 7_000_000, 7_000_000)),
        queues(90, 120, ("a", 1011, 906), ("c", 7_000_001, 7_000_001)),
        queues(120, 150, ("a", 1011, 906), ("b", 5_000_025, 5_000_001), ("c", 7_000_001, 7_000_001)),
    ]
    assert flows_by_hour(steps.topic_spans(history(rows))) == {("g", 0): ((10 + 2, 5 + 2, 0, 0), (25, 11, 0, 0))}


def test_a_queue_that_was_reset_hides_nothing_of_the_others(history: Any) -> None:
    from mqadmin.reports import steps  # needs PySpark

    rows = [
        queues(0, 30, ("a", 1000, 900), ("b", 50, 40)),
        queues(30, 60, ("a", 1000, 100), ("b", 60, 55)),
        queues(60, 90, ("a", 3, 1), ("b", 61, 56)),
    ]
    assert flows_by_hour(steps.topic_spans(history(rows))) == {("g", 0): ((11, 16, 0, 0), (0, 0, 0, 0))}


def test_flows_of_random_histories_are_those_of_a_slow_model(history: Any) -> None:
    """Gaps, brokers that are away, offsets that are not known, resets, new topics, over several hours."""
    from mqadmin.reports import steps  # needs PySpark

    for seed in range(3):
        rows = random_moves(random.Random(seed))
        assert flows_by_hour(steps.topic_spans(history(rows))) == slow_flows(rows), f"seed {seed}"


def random_moves(chance: random.Random) -> list[dict[str, Any]]:
    rows = []
    for group in ("a", "b"):
        for topic in ("orders", "refunds", f"%RETRY%{group}", f"%DLQ%{group}"):
            at, is_dead = chance.randrange(600), topic.startswith("%DLQ%")
            ends, committed = {"a": chance.randrange(3), "b": 5_000}, {"a": 0, "b": 4_000}
            while at < 4 * 3600:
                # As in the history, no row goes on into the next hour.
                until = min(at + chance.randrange(1, 900), (at // 3600 + 1) * 3600)
                found = []
                for broker in ends:
                    end = ends[broker]
                    ends[broker] = end = chance.randrange(3) if chance.random() < 0.05 else end + chance.randrange(50)
                    is_reset = chance.random() < 0.1
                    committed[broker] = chance.randrange(end + 1) if is_reset else min(end, committed[broker] + 20)
                    known = None if is_dead or chance.random() < 0.08 else committed[broker]
                    found.append((broker, None if chance.random() < 0.05 else end, known))
                there = [one for one in found if one[0] == "a" or chance.random() < 0.8]
                chance.shuffle(there)
                rows.append(queues(at, until, *there, topic=topic) | {"consumer_group": group})
                at = until if chance.random() < 0.8 else until + chance.randrange(1, 4000)
    return rows


def slow_flows(rows: list[dict[str, Any]]) -> dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]]:
    """Goes from row to row of each topic, and puts each step of each queue where it belongs."""
    sums: dict[tuple[str, int], dict[str, list[int]]] = {}
    last: dict[tuple[str, str, str], tuple[datetime, int, int]] = {}
    seen: set[tuple[str, str]] = set()
    for one in sorted(rows, key=lambda row: row["at"]):
        group, topic = one["consumer_group"], one["topic"]
        is_dead = topic.startswith("%DLQ%")
        hour = sums.setdefault(
            (group, (int(one["at"].timestamp()) - START_S) // 3600), {name: [0, 0] for name in MOVED}
        )
        found = [
            (broker, end, 0 if is_dead or (end == 0 and committed is None) else committed)
            for broker, end, committed in zip(one["brokers"], one["ends"], one["committed"], strict=True)
        ]
        if any(end is None or committed is None for _, end, committed in found):
            continue
        of_topic = [other for other in rows if (other["consumer_group"], other["topic"]) == (group, topic)]
        began = min(other["at"] for other in of_topic)
        sampled = [other["until"] for other in rows if other["consumer_group"] == group and other["at"] < began]
        is_new = topic.startswith("%") and bool(sampled) and (group, topic) not in seen
        seen.add((group, topic))
        for broker, end, committed in found:
            before = (max(sampled), 0, 0) if is_new else last.get((group, topic, broker))
            last[group, topic, broker] = (one["until"], end, committed)
            if before is None:
                continue
            is_gap = before[0] < one["at"]
            came, went = max(0, end - before[1]), max(0, committed - before[2])
            if is_dead:
                hour["dead"][is_gap] += came
            else:
                hour["retried" if topic.startswith("%RETRY%") else "produced"][is_gap] += came
                hour["consumed"][is_gap] += went
    return {
        key: (tuple(hour[name][0] for name in MOVED), tuple(hour[name][1] for name in MOVED))
        for key, hour in sums.items()
    }


def test_hours_have_the_median_and_the_95th_percentile_of_the_lag_by_how_long_it_held(history: Any) -> None:
    """Hour 0 of g: 10 for 2,000 s, 20 for 1,400 s, 500 for 200 s. Hour 1: 5, retries included, and 900 for 100 s."""
    from mqadmin.reports import steps  # needs PySpark

    rows = [
        row(0, 2000, end=10),
        row(2000, 3400, end=20),
        row(3400, 3600, end=500),
        row(3600, 5000, end=4),
        row(5000, 5100, end=899),
        row(5100, 7200, end=4),
        row(3600, 7200, topic="%RETRY%g", end=1),
        row(3600, 7200, topic="%DLQ%g", end=77, committed=None),
        row(0, 1800, group="half", end=7),
        row(1800, 3600, group="half", end=9_000, committed=None),
    ]
    topics = steps.topic_spans(history(rows))
    hours = steps.group_hours(steps.group_spans(by_default(topics)), steps.flows(topics))
    names = ("consumer_group", "known_ms", "lag_p50", "lag_p95", "lag_max")
    assert found(hours, *names) == [
        ("g", 3_600_000, 10.0, 500.0, 500),
        ("g", 3_600_000, 5.0, 5.0, 900),
        ("half", 1_800_000, 7.0, 7.0, 7),
    ]


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
    spans = steps.group_spans(by_default(topics))
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


def test_time_is_judged_by_the_objective_that_held_then(history: Any) -> None:
    """One message waits since 0. A minute is allowed until 100, then 200 s, and from 300 on no second message."""
    from mqadmin.reports import steps  # needs PySpark

    rows = [
        row(0, 150, end=1, committed=0, since=0),
        row(150, 320, end=1, committed=0, since=0),
        row(320, 400, end=3, committed=1, since=310),
        row(0, 100, group="other", end=9, committed=0, since=0),
    ]
    objectives = [("g", 0, 100, 60, None), ("g", 100, 300, 200, None), ("g", 300, 9999, 500, 1)]
    topics = steps.topic_spans(history(rows))
    spans = steps.group_spans(by_default(topics, *objectives))
    over: dict[str, int] = {}
    for group, ms, is_over in found(spans, "consumer_group", "held_ms", "is_over"):
        over[group] = over.get(group, 0) + (ms // 1000 if is_over else 0)
    assert over == {"g": (100 - 60) + (300 - 200) + (400 - 320), "other": 40}
    assert sum(ms for (ms,) in found(spans.where("consumer_group = 'g'"), "held_ms")) == 400_000


def test_the_age_of_the_oldest_message_is_taken_minute_by_minute(history: Any) -> None:
    """The oldest of any topic counts; a minute of which a topic is not known is none."""
    from mqadmin.reports import steps  # needs PySpark

    rows = [
        row(0, 150, end=9, committed=0, since=-10),
        row(0, 60, topic="refunds", end=9, committed=0, since=-30),
        row(150, 240, end=9, committed=9),
        row(240, 270, end=9, committed=None),
        row(0, 300, topic="%DLQ%g", end=9, committed=None),
    ]
    minutes = steps.group_minutes(steps.topic_spans(history(rows)))
    assert [(minute - START_S // 60, age) for minute, age in found(minutes, "minute", "age_ms")] == [
        (0, 90_000),
        (1, 130_000),
        (2, 160_000),
        (3, 0),
        (4, None),
    ]
    assert found(steps.wait_days(minutes), "wait_p50_ms", "wait_p95_ms", "wait_max_ms") == [(110_000, 155_500, 160_000)]


def test_retries_cost_messages_and_the_time_for_which_they_waited(history: Any) -> None:
    from mqadmin.reports import steps  # needs PySpark

    rows = [
        row(0, 60, end=10, committed=10),
        row(0, 30, topic="%RETRY%g", end=1, committed=1),
        row(30, 60, topic="%RETRY%g", end=4, committed=1),
        row(60, 70, topic="%RETRY%g", end=4, committed=2),
    ]
    moved = steps.flows(steps.topic_spans(history(rows)))
    assert found(moved, "retried", "retry_wait_ms") == [(3, 3 * 30_000 + 2 * 10_000)]


def test_a_queue_is_weighed_by_the_time_in_which_it_is_known_and_a_topic_made_anew_is_no_flood(history: Any) -> None:
    from mqadmin.reports import steps  # needs PySpark

    rows = [
        row(0, 30, end=1_000_000, committed=999_990),
        row(30, 60, end=1_000_005, committed=999_995),
        row(60, 90, end=1_000_005, committed=None),
        row(90, 120, end=1, committed=None),  # made anew
        row(120, 150, end=8, committed=None),
    ]
    assert found(steps.queue_days(history(rows)), "lag_mean", "lag_max", "produced") == [(10.0, 10, 5 + 7)]


def test_the_drain_counts_retries_on_both_sides(history: Any) -> None:
    """From 70 to 60 in 100 s, while as many were retried as were consumed beside that: 600 s for the other 60."""
    from mqadmin.reports import steps  # needs PySpark

    rows = [
        row(0, 50, end=100, committed=30),
        row(50, 100, end=100, committed=40),
        row(0, 50, topic="%RETRY%g", end=0, committed=0),
        row(50, 100, topic="%RETRY%g", end=500, committed=500),
    ]
    topics = steps.topic_spans(history(rows))
    spans = steps.group_spans(by_default(topics))
    days = steps.group_days(spans, steps.group_hours(spans, steps.flows(topics)))
    assert found(days, "lag_last", "consumed", "drain_s") == [(60, 510, 600.0)]


def test_the_queue_that_gets_twice_its_share_is_skewed_whatever_waits(history: Any) -> None:
    from mqadmin.reports import steps  # needs PySpark

    rows = [
        *(row(0, 30, queue=queue, end=0, committed=0) for queue in range(4)),
        *(row(30, 60, queue=queue, end=end, committed=end) for queue, end in enumerate((10, 300, 10, 80))),
        *(row(0, 30, group="few", queue=queue, end=0, committed=0) for queue in range(2)),
        *(row(30, 60, group="few", queue=queue, end=end, committed=end) for queue, end in enumerate((0, 90))),
    ]
    skewed = steps.skewed_queues(steps.queue_days(history(rows)))
    assert [(one.consumer_group, one.skewed_queue.queue, one.skewed_queue.skew) for one in skewed.collect()] == [
        ("g", 1, 3.0)
    ]


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
    objectives = [("a", 0, 400, 30, None), ("a", 400, 9999, 100, 40), ("b", 0, 9999, 10, 0)]
    topics = steps.topic_spans(history(rows))
    spans = steps.group_spans(by_default(topics, *objectives))
    by_second: dict[tuple[str, int], tuple[int, bool]] = {}
    for group, at, held, lag, over in found(spans, "consumer_group", "at", "held_ms", "lag", "is_over"):
        for second in range(int(seconds(at)), int(seconds(at + held))):
            by_second[group, second] = (lag, over)
    slow = slow_model(rows, objectives)
    assert by_second == slow
    hours = found(steps.group_hours(spans, steps.flows(topics)), "consumer_group", "lag_p50", "lag_p95")
    lags = {group: sorted(lag for (name, _), (lag, _) in slow.items() if name == group) for group in ("a", "b", "c")}
    assert hours == [
        (group, slow_percentile(of_group, 0.5), slow_percentile(of_group, 0.95)) for group, of_group in lags.items()
    ]
    minutes = found(steps.group_minutes(topics), "consumer_group", "minute", "age_ms")
    assert {(group, minute): age for group, minute, age in minutes} == slow_ages(rows)


def slow_percentile(lags: list[int], share: float) -> float:
    """Of the lags of seconds, each of which is a thousand of milliseconds: between the two nearest."""
    place = share * (len(lags) * 1000 - 1)
    low, high = (lags[int(one) // 1000] for one in (math.floor(place), math.ceil(place)))
    return round(low + (high - low) * (place - math.floor(place)), 1)


def slow_ages(rows: list[dict[str, Any]]) -> dict[tuple[str, int], int | None]:
    """The age of the oldest message at the end of each minute of each row."""
    ages: dict[tuple[str, int], list[int | None]] = {}
    for one in rows:
        at, until = (int(one[name].timestamp()) for name in ("at", "until"))
        (committed,), (end,), (since,) = one["committed"], one["ends"], one["waiting_since_ms"]
        for minute in {second // 60 for second in range(at, until)}:
            age = max(0, min(until, minute * 60 + 60) * 1000 - since) if since else 0
            is_unknown = end > 0 and committed is None
            ages.setdefault((one["consumer_group"], minute), []).append(None if is_unknown else age)
    return {key: None if None in found else max(found) for key, found in ages.items()}  # type: ignore[type-var]


def slow_model(
    rows: list[dict[str, Any]], objectives: list[tuple[str, int, int, int, int | None]]
) -> dict[tuple[str, int], tuple[int, bool]]:
    """Lag and whether the objective is missed, second by second."""
    seen: dict[tuple[str, int], list[tuple[int | None, bool]]] = {}
    for one in rows:
        at, until = (int(one[name].timestamp()) - START_S for name in ("at", "until"))
        (committed,), (end,), (since,) = one["committed"], one["ends"], one["waiting_since_ms"]
        lag = 0 if end == 0 else None if committed is None else end - committed
        for second in range(at, until):
            allowed_ms = next(
                (
                    s * 1000
                    for group, begin, end_, s, _ in objectives
                    if group == one["consumer_group"] and begin <= second < end_
                ),
                OBJECTIVE_MS,
            )
            is_over = since > 0 and (START_S + second) * 1000 >= since + allowed_ms
            seen.setdefault((one["consumer_group"], second), []).append((lag, is_over))

    def most(group: str, second: int) -> float:
        said = (lag for name, begin, end_, _, lag in objectives if name == group and begin <= second < end_)
        return next((lag for lag in said if lag is not None), float("inf"))

    return {
        key: (sum(lag for lag, _ in found), any(over for _, over in found) or sum(lag for lag, _ in found) > most(*key))
        for key, found in seen.items()
        if all(lag is not None for lag, _ in found)
    }
