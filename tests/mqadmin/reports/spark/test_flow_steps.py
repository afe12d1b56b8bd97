"""What moved from sample to sample, on tables worked out by hand and against a slow model in plain Python."""

from __future__ import annotations

import random
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.lag_rows import START_S, by_default, found, queues, random_moves, row, seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

MOVED = ("produced", "consumed", "retried", "dead")


def test_flows_count_what_moved_and_not_what_was_reset(history: Any) -> None:
    from mqadmin.reports import flow_steps, steps  # needs PySpark

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
    moved = flow_steps.flows(steps.topic_spans(history(rows)))
    names = ("produced", "consumed", "retried", "dead", "members")
    assert found(moved, *names) == [(7, 5 + 3 + 2, 3, 2, 1)]


def flows_by_hour(topics: DataFrame) -> dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]]:
    """By group and hour after START_S: what moved in it, and over gaps that ended in it (`MOVED`)."""
    from mqadmin.reports import flow_steps  # needs PySpark

    return {
        (one.consumer_group, int(seconds(one.hour)) // 3600): (
            tuple(one[name] for name in MOVED),
            tuple(one[f"gap_{name}"] for name in MOVED),
        )
        for one in flow_steps.flows(topics).collect()
    }


def test_what_moved_over_a_gap_belongs_to_no_hour_and_to_the_day(history: Any) -> None:
    """10 and 6 a sample; from 3600 on nothing is sampled for two hours, in which 900 came, 800 went and 5 died."""
    from mqadmin.reports import flow_steps, steps  # needs PySpark

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
    days = steps.group_days(spans, steps.group_hours(spans, flow_steps.flows(topics)))
    assert found(days, *MOVED) == [(920, 819, 7, 6)]
    assert found(days, "peak_in_s", "peak_out_s") == [(round(10 / 3600, 3), round(6 / 3600, 3))], "no false flood"


def test_first_retries_and_dead_letters_of_a_group_count_and_those_of_one_just_added_do_not(history: Any) -> None:
    """`added` is seen for the first time, with all it ever had; `away` was not sampled when its first ones died."""
    from mqadmin.reports import flow_steps, steps  # needs PySpark

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
    new = {
        (one.topic, seconds(one.began_at), seconds(one.group_until)) for one in flow_steps.new_topics(topics).collect()
    }
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


def test_retries_cost_messages_and_the_time_for_which_they_waited(history: Any) -> None:
    from mqadmin.reports import flow_steps, steps  # needs PySpark

    rows = [
        row(0, 60, end=10, committed=10),
        row(0, 30, topic="%RETRY%g", end=1, committed=1),
        row(30, 60, topic="%RETRY%g", end=4, committed=1),
        row(60, 70, topic="%RETRY%g", end=4, committed=2),
    ]
    moved = flow_steps.flows(steps.topic_spans(history(rows)))
    assert found(moved, "retried", "retry_wait_ms") == [(3, 3 * 30_000 + 2 * 10_000)]
