"""Each step on a table that was worked out by hand; the whole against a slow model in plain Python."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from tests.support.lag_rows import OBJECTIVE_MS, START_S, by_default, found, row, seconds

pytestmark = pytest.mark.spark


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


def test_hours_have_the_median_and_the_95th_percentile_of_the_lag_by_how_long_it_held(history: Any) -> None:
    """Hour 0 of g: 10 for 2,000 s, 20 for 1,400 s, 500 for 200 s. Hour 1: 5, retries included, and 900 for 100 s."""
    from mqadmin.reports import flow_steps, steps  # needs PySpark

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
    hours = steps.group_hours(steps.group_spans(by_default(topics)), flow_steps.flows(topics))
    names = ("consumer_group", "known_ms", "lag_p50", "lag_p95", "lag_max")
    assert found(hours, *names) == [
        ("g", 3_600_000, 10.0, 500.0, 500),
        ("g", 3_600_000, 5.0, 5.0, 900),
        ("half", 1_800_000, 7.0, 7.0, 7),
    ]


def test_group_days_weigh_by_time_and_name_the_worst_hour(history: Any) -> None:
    """Less than a hundredth of the time with lag: the 99th percentile is 0, the most is not."""
    from mqadmin.reports import flow_steps, steps  # needs PySpark

    rows = [
        row(0, 3600, end=100, committed=100),
        row(3600, 3650, end=600, committed=100, since=3500),
        row(3650, 6000, end=600, committed=600),
        row(0, 6000, group="left", end=5, committed=0, since=0, members=0),
    ]
    topics = steps.topic_spans(history(rows))
    spans = steps.group_spans(by_default(topics))
    hours = steps.group_hours(spans, flow_steps.flows(topics))
    days = steps.group_days(spans, hours)
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
    peaks = [("g", 0.208, 0.208), ("left", 0.0, 0.0)]  # 500 messages in 2,400 s
    for frame in (days, steps.peaks(hours)):
        assert found(frame, "consumer_group", "peak_in_s", "peak_out_s") == peaks


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


def test_the_drain_counts_retries_on_both_sides(history: Any) -> None:
    """From 70 to 60 in 100 s, while as many were retried as were consumed beside that: 600 s for the other 60."""
    from mqadmin.reports import flow_steps, steps  # needs PySpark

    rows = [
        row(0, 50, end=100, committed=30),
        row(50, 100, end=100, committed=40),
        row(0, 50, topic="%RETRY%g", end=0, committed=0),
        row(50, 100, topic="%RETRY%g", end=500, committed=500),
    ]
    topics = steps.topic_spans(history(rows))
    spans = steps.group_spans(by_default(topics))
    days = steps.group_days(spans, steps.group_hours(spans, flow_steps.flows(topics)))
    assert found(days, "lag_last", "consumed", "drain_s") == [(60, 510, 600.0)]


def test_random_histories_have_the_same_figures_as_a_slow_model(history: Any) -> None:
    from mqadmin.reports import flow_steps, steps  # needs PySpark

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
    hours = found(steps.group_hours(spans, flow_steps.flows(topics)), "consumer_group", "lag_p50", "lag_p95")
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
