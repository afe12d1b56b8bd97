"""What a day is held against, on tables that were worked out by hand, and against a slow model."""

from __future__ import annotations

import random
from statistics import NormalDist, linear_regression, mean, median
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
HOURS = (
    "cluster STRING, consumer_group STRING, hour BIGINT, known_ms BIGINT, lag_mean DOUBLE, produced BIGINT, "
    "consumed BIGINT, retried BIGINT, dead BIGINT, members INT"
)


def hour(at: int, **values: Any) -> tuple[Any, ...]:
    """An hour that is known as a whole: 1,000 came in, 1,000 were consumed, and nothing waited."""
    usual = {"group": "g", "known_ms": HOUR_MS, "lag": 0.0, "came": 1000, "went": 1000, "retried": 0, "dead": 0}
    one = usual | {"members": 2} | values
    return ("c", one["group"], at * HOUR_MS, one["known_ms"], one["lag"], one["came"], one["went"],
            one["retried"], one["dead"], one["members"])  # fmt: skip


def hours(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), HOURS)


def test_growth_is_held_against_the_hours_that_are_known_of_both(spark: SparkSession) -> None:
    """A day of which two hours are known grew by half, however much came in the other hours a week before."""
    from mqadmin.reports import comparing  # needs PySpark

    week = 7 * 24
    now = hours(
        spark,
        hour(week, came=1500),
        hour(week + 1, came=750, known_ms=HOUR_MS // 2),
        hour(week + 2, came=9, known_ms=60_000),
        hour(week, group="new"),
        hour(week, group="woken"),
    )
    before = hours(spark, *(hour(number) for number in range(24)), hour(0, group="woken", came=0))
    found = comparing.growth(now, before, week * HOUR_MS).collect()
    assert {one.consumer_group: one.growth for one in found} == {"g": 1.5, "woken": None}


def test_an_unusual_hour_has_the_first_reason_that_holds(spark: SparkSession) -> None:
    from mqadmin.reports import comparing  # needs PySpark

    names = ("flood", "silent", "slow", "failing", "left", "idle", "usual", "fresh")
    days = (-3, -2, -1)
    earlier = [
        hour(24 * day + 5, group=name, came=1000 + 10 * day) for day in days for name in names if name != "fresh"
    ]
    today = hours(
        spark,
        hour(5, group="flood", came=1600, lag=500.0),
        hour(5, group="silent", came=300),
        hour(5, group="slow", went=400, lag=600.0),
        hour(5, group="failing", retried=90, dead=30),
        hour(5, group="left", lag=900.0, members=0),
        hour(5, group="idle", lag=101.0),
        hour(5, group="usual", came=1400, lag=99.0),
        hour(5, group="fresh", came=99_999),
        hour(6, group="flood", came=99_999),
    )
    found = comparing.anomalies(today, hours(spark, *earlier)).collect()
    assert {one.consumer_group: [tuple(each) for each in one.anomalies] for one in found} == {
        "flood": [(5 * HOUR_MS, "flood", 1600.0, 980.0)],
        "silent": [(5 * HOUR_MS, "silence", 300.0, 980.0)],
        "slow": [(5 * HOUR_MS, "slow", 600.0, 0.0)],
        "failing": [(5 * HOUR_MS, "failing", 120.0, 0.0)],
        "left": [(5 * HOUR_MS, "stopped", 900.0, 0.0)],
        "idle": [(5 * HOUR_MS, "lag", 101.0, 0.0)],
    }


def test_unusual_hours_are_those_of_a_slow_model(spark: SparkSession) -> None:
    from mqadmin.reports import comparing  # needs PySpark

    chance = random.Random(7)
    groups, days = [f"g{number}" for number in range(20)], range(-9, 1)
    rows = [
        hour(24 * day + 5, group=group, came=chance.choice((900, 1000, 1100, 3000)))
        for group in groups
        for day in days
        if chance.random() < 0.8
    ]
    today = [one for one in rows if one[2] == 5 * HOUR_MS]
    earlier = [one for one in rows if one[2] < 5 * HOUR_MS]
    expected = {}
    for one in today:
        past = [other[5] for other in earlier if other[1] == one[1]]
        if len(past) < 3:
            continue
        usual = median(past)
        spread = max(median([abs(value - usual) for value in past]) * 4 * 1.4826, usual / 2, 100)
        if abs(one[5] - usual) > spread:
            expected[one[1]] = ("flood" if one[5] > usual else "silence", float(one[5]), float(usual))
    found = comparing.anomalies(hours(spark, *today), hours(spark, *earlier)).collect()
    assert {one.consumer_group: tuple(one.anomalies[0])[1:] for one in found} == expected
    assert expected


def trend(spark: SparkSession, *rows: tuple[str, int, float | None, float | None]) -> DataFrame:
    names = "cluster STRING, consumer_group STRING, day INT, peak_in_s DOUBLE, peak_out_s DOUBLE"
    return spark.createDataFrame([("c", *one) for one in rows], names)


def test_a_trend_leads_on_and_its_interval_is_none_where_it_is_exact(spark: SparkSession) -> None:
    """10, 11, … 16 a second on seven days: 46 thirty days after the last; six days say nothing."""
    from mqadmin.reports import comparing  # needs PySpark

    rows = [("g", day, 10.0 + day, 50.0 - day) for day in range(7)]
    rows += [("young", day, 10.0, 10.0) for day in range(6)]
    rows += [("falling", day, 7.0 - day, 1.0) for day in range(7)]
    found = {one.consumer_group: tuple(one)[2:] for one in comparing.forecasts(trend(spark, *rows)).collect()}
    assert found == {"g": (46.0, 46.0, 46.0, 50.0), "falling": (0.0, 0.0, 0.0, 1.0)}


def test_the_interval_of_a_trend_is_that_of_a_regression(spark: SparkSession) -> None:
    from mqadmin.reports import comparing  # needs PySpark

    chance = random.Random(3)
    days = list(range(28))
    peaks = [100 + 2 * day + chance.gauss(0, 10) for day in days]
    (found,) = comparing.forecasts(trend(spark, *(("g", day, peaks[day], None) for day in days))).collect()
    slope, start = linear_regression(days, peaks)
    expected = start + slope * 57
    left = sum((peak - start - slope * day) ** 2 for day, peak in zip(days, peaks, strict=True))
    xx = sum((day - mean(days)) ** 2 for day in days)
    half = 1.315 * (left / 26) ** 0.5 * (1 + 1 / 28 + (57 - mean(days)) ** 2 / xx) ** 0.5
    assert found.forecast_in_s == pytest.approx(expected, abs=0.001)
    assert found.forecast_low_s == pytest.approx(expected - half, abs=0.001)
    assert found.forecast_high_s == pytest.approx(expected + half, abs=0.001)
    assert comparing._T_90[-1] > NormalDist().inv_cdf(0.9), "wider than if the spread were known"
