"""Steps that hold a day against others: growth, what was unusual and why, and where it leads. No Python UDF.

`hours` and `days` are what `steps.group_hours` and `steps.group_days` give; of other days they are read from the
results of their reports.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqadmin.reports.step_columns import GROUP, HOUR_MS

DAY_MS = 24 * HOUR_MS
# An hour of which less is known says little of the hour.
KNOWN_MS_MIN = HOUR_MS // 2
# Of fewer days nobody can say what is usual.
USUAL_DAYS_MIN = 3
# Unusual is further from the median than so many median deviations (4 sigma of what is spread evenly), than half of
# it, and than so many messages an hour or waiting.
DEVIATIONS = 4 * 1.4826
SHARE = 0.5
FLOOR = 100.0
# A trend of less than a week is one of its weekdays.
FORECAST_DAYS_MIN = 7
FORECAST_AHEAD_DAYS = 30
# Student's t, 90 % on one side (an interval of 80 %), for 5, 6, … degrees of freedom; beyond, as for the last.
_T_90 = (
    *(1.476, 1.440, 1.415, 1.397, 1.383, 1.372, 1.363, 1.356, 1.350, 1.345, 1.341, 1.337),
    *(1.333, 1.330, 1.328, 1.325, 1.323, 1.321, 1.319, 1.318, 1.316, 1.315, 1.314),
)
_MEASURES = ("lag", "came", "went", "failed")


def before(days: DataFrame) -> DataFrame:
    """The figures of another day that stand beside those of this one."""
    return days.select(
        *GROUP,
        F.col("produced").alias("produced_before"),
        F.col("over_ms").alias("over_ms_before"),
        F.col("lag_p95").alias("lag_p95_before"),
        F.col("dead").alias("dead_before"),
    )


def growth(hours: DataFrame, before: DataFrame, later_ms: int) -> DataFrame:
    """How many times as many messages came in as `later_ms` before, over the hours that are known of both.

    Null where nothing came before. A day that is not over is held against the same hours.
    """
    earlier = before.where(F.col("known_ms") >= KNOWN_MS_MIN).select(
        *GROUP,
        (F.col("hour") + later_ms).alias("hour"),
        (F.col("produced") / F.col("known_ms")).alias("rate_before"),
    )
    both = hours.where(F.col("known_ms") >= KNOWN_MS_MIN).join(earlier, on=[*GROUP, "hour"], how="inner")
    sums = both.groupBy(*GROUP).agg(
        F.sum(F.col("produced") / F.col("known_ms")).alias("now"), F.sum("rate_before").alias("then")
    )
    return sums.select(*GROUP, F.when(F.col("then") > 0, F.round(F.col("now") / F.col("then"), 3)).alias("growth"))


def anomalies(hours: DataFrame, earlier: DataFrame) -> DataFrame:
    """The hours of each group that were not as the same hour of the days before, with the first reason that holds.

    `value` and `usual` (the median) are messages an hour; of the reasons stopped, slow and lag, messages that waited.
    """
    usual = (
        _measured(earlier)
        .groupBy(*GROUP, "hour_of_day")
        .agg(*(F.sort_array(F.collect_list(name)).alias(name) for name in _MEASURES))
        .where(F.size("lag") >= USUAL_DAYS_MIN)
        .select(*GROUP, "hour_of_day", *(_usual(name).alias(f"usual_{name}") for name in _MEASURES))
    )
    both = _measured(hours).join(usual, on=[*GROUP, "hour_of_day"], how="inner")

    def more(name: str) -> Column:
        return F.col(name) > F.col(f"usual_{name}.median") + F.col(f"usual_{name}.spread")

    def less(name: str) -> Column:
        return F.col(name) < F.col(f"usual_{name}.median") - F.col(f"usual_{name}.spread")

    reasons = (
        ("stopped", more("lag") & (F.col("members") == 0), "lag"),
        ("flood", more("came"), "came"),
        ("failing", more("failed"), "failed"),
        ("slow", more("lag") & less("went"), "lag"),
        ("silence", less("came"), "came"),
        ("lag", more("lag"), "lag"),
    )
    first = F.coalesce(*(F.when(holds, _anomaly(reason, measure)) for reason, holds, measure in reasons))
    return (
        both.select(*GROUP, first.alias("found"))
        .where(F.col("found").isNotNull())
        .groupBy(*GROUP)
        .agg(F.array_sort(F.collect_list("found")).alias("anomalies"))
        .select(*GROUP, "anomalies")
    )


def forecasts(days: DataFrame) -> DataFrame:
    """Where the peak of each group leads in FORECAST_AHEAD_DAYS: a straight line, and its prediction interval of 80 %.

    `days`: `day` (a number), `peak_in_s`, `peak_out_s`. `most_out_s`: the most that it was seen to consume in an hour.
    """
    x, y = F.col("day").cast("double"), F.col("peak_in_s")
    n = F.col("n")
    sums = (
        days.where(y.isNotNull())
        .groupBy(*GROUP)
        .agg(
            F.count(y).alias("n"),
            F.avg(x).alias("mean_x"),
            F.avg(y).alias("mean_y"),
            F.var_pop(x).alias("xx"),
            F.var_pop(y).alias("yy"),
            F.covar_pop(x, y).alias("xy"),
            F.max(x).alias("last"),
            F.max("peak_out_s").alias("most_out_s"),
        )
        .where((n >= FORECAST_DAYS_MIN) & (F.col("xx") > 0))
    )
    slope = F.col("xy") / F.col("xx")
    ahead = F.col("last") + FORECAST_AHEAD_DAYS - F.col("mean_x")
    expected = F.col("mean_y") + slope * ahead
    left = F.greatest(F.col("yy") - slope * F.col("xy"), F.lit(0.0)) * n
    spread = F.sqrt(left / (n - 2)) * F.sqrt(1 + 1 / n + ahead * ahead / (n * F.col("xx")))
    freedom = F.least(n - 2 - (FORECAST_DAYS_MIN - 2) + 1, F.lit(len(_T_90))).cast("int")
    half = F.element_at(F.array(*map(F.lit, _T_90)), freedom) * spread

    def rate(value: Column) -> Column:
        return F.round(F.greatest(value, F.lit(0.0)), 3)

    return sums.select(
        *GROUP,
        rate(expected).alias("forecast_in_s"),
        rate(expected - half).alias("forecast_low_s"),
        rate(expected + half).alias("forecast_high_s"),
        "most_out_s",
    )


def _measured(hours: DataFrame) -> DataFrame:
    """What hours are held against each other by, as if each had been known from beginning to end."""

    def an_hour(value: Column) -> Column:
        return value * HOUR_MS / F.col("known_ms")

    return hours.where(F.col("known_ms") >= KNOWN_MS_MIN).select(
        *GROUP,
        "hour",
        F.pmod(F.floor(F.col("hour") / HOUR_MS), F.lit(24)).alias("hour_of_day"),
        F.col("lag_mean").cast("double").alias("lag"),
        an_hour(F.col("produced")).alias("came"),
        an_hour(F.col("consumed")).alias("went"),
        an_hour(F.col("retried") + F.col("dead")).alias("failed"),
        "members",
    )


def _usual(name: str) -> Column:
    """The median of a sorted array, and how far from it is still usual."""
    median = _median(F.col(name))
    off = F.sort_array(F.transform(name, lambda value: F.abs(value - median)))
    spread = F.greatest(_median(off) * DEVIATIONS, median * SHARE, F.lit(FLOOR))
    return F.struct(median.alias("median"), spread.alias("spread"))


def _median(ordered: Column) -> Column:
    low = F.floor((F.size(ordered) + 1) / 2).cast("int")
    high = F.floor(F.size(ordered) / 2).cast("int") + 1
    return (F.element_at(ordered, low) + F.element_at(ordered, high)) / 2


def _anomaly(reason: str, measure: str) -> Column:
    return F.struct(
        F.col("hour"),
        F.lit(reason).alias("reason"),
        F.round(measure, 1).alias("value"),
        F.round(f"usual_{measure}.median", 1).alias("usual"),
    )
