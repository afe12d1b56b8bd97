"""The steps of a report: each a pure function of DataFrames whose closing `select` is its contract. No Python UDF.

    history ──► topic_spans ──► judged ──► group_spans ──┐
       │             ├──► new_topics ────► flows ────────┴─► group_hours ──► group_days, peaks
       │             └──► group_minutes ──► wait_days
       └──► queue_days ──► hot_queues, skewed_queues

`new_topics` and `flows` are in `flow_steps.py`, those of queues in `queue_steps.py`. What is compared with other days
is in `comparing.py`, what was no sample (rebalances, dead letters, subscriptions) in `event_steps.py`.

Times are milliseconds since the epoch, durations milliseconds; what is not known is null. A time in which the lag of
one queue of a group is not known is no part of any figure of that group, but for the messages that moved meanwhile:
offsets before and after say how many, not when. They belong to no hour, so to no peak, growth, anomaly or forecast, and
stand as `gap_…` beside what moved in the hours; a day's sums have both.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqadmin.reports.step_columns import COUNTED, GROUP, MOVED, hour_of, total, waiting, zero_for_null
from remoting.wire.names import DLQ_PREFIX, RETRY_PREFIX

MINUTE_MS = 60_000
# A rate of less than ten minutes is no peak of an hour.
PEAK_KNOWN_MS_MIN = 600_000
# Any number of messages may wait.
ANY_LAG = 2**63 - 1


def topic_spans(history: DataFrame) -> DataFrame:
    """One row of the history each. `lag`, over all its queues, is null where an offset of one of them is not known.

    `keys` are the queues, in the order of `ends` and `committed`: as numbers, since rows go by the million through a
    shuffle, and names of brokers are most of what they weigh.
    """
    topic = F.col("topic")
    kind = (
        F.when(topic.startswith(RETRY_PREFIX), F.lit("retry"))
        .when(topic.startswith(DLQ_PREFIX), F.lit("dead"))
        .otherwise(F.lit("normal"))
    )
    return history.select(
        *GROUP,
        "topic",
        kind.alias("kind"),
        F.unix_millis("at").alias("at"),
        F.unix_millis("until").alias("until"),
        "verdict",
        "members",
        total(F.zip_with("ends", "committed", waiting)).alias("lag"),
        F.zip_with("brokers", "queues", lambda broker, queue: F.xxhash64(broker, queue)).alias("keys"),
        "ends",
        # A queue that never had a message has no committed offset, and needs none.
        F.zip_with("ends", "committed", lambda end, one: F.coalesce(one, F.when(end == 0, F.lit(0)))).alias(
            "committed"
        ),
        F.array_min(F.filter("waiting_since_ms", lambda moment: moment > 0)).alias("waiting_since"),
    )


def judged(topics: DataFrame, objectives: DataFrame, default_ms: int) -> DataFrame:
    """The rows cut where another objective began to hold for their group, with what held: how long, how many may wait.

    `objectives`: for groups that have one of their own, rows that leave no time out.
    """
    held = F.broadcast(
        objectives.select(
            "consumer_group", F.col("at").alias("from"), F.col("until").alias("to"), "objective_ms", "allowed_lag"
        )
    )
    joined = topics.join(held, on=["consumer_group"], how="left")
    is_meant = F.col("from").isNull() | ((F.col("from") < F.col("until")) & (F.col("to") > F.col("at")))
    # `greatest` and `least` pass over what is null.
    return joined.where(is_meant).select(
        *GROUP,
        "topic",
        "kind",
        F.greatest("at", "from").alias("at"),
        F.least("until", "to").alias("until"),
        "lag",
        "waiting_since",
        F.coalesce("objective_ms", F.lit(default_ms)).alias("objective_ms"),
        F.coalesce("allowed_lag", F.lit(ANY_LAG)).alias("allowed_lag"),
    )


def group_spans(topics: DataFrame) -> DataFrame:
    """The lag of each group from change to change: the sum over its topics, retries included, dead letters not.

    `is_over`: the oldest message of some topic had been waiting for longer than was allowed then, or more waited.
    """
    # `greatest` passes over what is null; where nothing waits, nothing is over.
    over_from = F.when(
        F.col("waiting_since").isNotNull(), F.greatest(F.col("at"), F.col("waiting_since") + F.col("objective_ms"))
    )
    is_known = F.col("lag").isNotNull()
    lag = F.coalesce(F.col("lag"), F.lit(0))
    unknown, nothing = F.when(is_known, 0).otherwise(1), F.lit(0)
    # What is allowed is said by every row that begins, the same by all of a group.
    allowed, unsaid = F.col("allowed_lag"), F.lit(None).cast("long")
    changes = [
        _change(F.col("at"), open_=F.lit(1), lag=lag, unknown=unknown, over=nothing, allowed=allowed),
        _change(F.col("until"), open_=F.lit(-1), lag=-lag, unknown=-unknown, over=nothing, allowed=unsaid),
        _change(over_from, open_=nothing, lag=nothing, unknown=nothing, over=F.lit(1), allowed=unsaid),
        _change(F.col("until"), open_=nothing, lag=nothing, unknown=nothing, over=F.lit(-1), allowed=unsaid),
    ]
    is_ever_over = over_from < F.col("until")
    at_moments = (
        topics.where(F.col("kind") != "dead")
        .select(*GROUP, F.explode(F.when(is_ever_over, F.array(*changes)).otherwise(F.array(*changes[:2]))).alias("c"))
        .groupBy(*GROUP, F.col("c.at").alias("at"))
        .agg(
            *(F.sum(f"c.{name}").alias(name) for name in ("open", "lag", "unknown", "over")),
            F.max("c.allowed").alias("allowed"),
        )
    )
    of_group = Window.partitionBy(*GROUP).orderBy("at")
    so_far = of_group.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    running = at_moments.select(
        *GROUP,
        "at",
        (F.lead("at").over(of_group) - F.col("at")).alias("held_ms"),
        *(F.sum(name).over(so_far).alias(name) for name in ("open", "lag", "unknown", "over")),
        F.last("allowed", ignorenulls=True).over(so_far).alias("allowed"),
    )
    is_sampled = (F.col("open") > 0) & (F.col("unknown") == 0) & F.col("held_ms").isNotNull()
    is_over = (F.col("over") > 0) | (F.col("lag") > F.col("allowed"))
    return running.where(is_sampled).select(*GROUP, "at", "held_ms", "lag", is_over.alias("is_over"))


def group_minutes(topics: DataFrame) -> DataFrame:
    """Each minute of each group: how old the oldest message that was not consumed became in it; null: not known."""
    first, last = F.floor(F.col("at") / MINUTE_MS), F.floor((F.col("until") - 1) / MINUTE_MS)
    minutes = topics.where((F.col("kind") != "dead") & (F.col("at") < F.col("until"))).select(
        *GROUP, "until", "lag", "waiting_since", F.explode(F.sequence(first, last)).alias("minute")
    )
    seen_at = F.least(F.col("until"), (F.col("minute") + 1) * MINUTE_MS)
    # A message that came with the newest sample has not been seen to wait.
    age = F.coalesce(F.greatest(seen_at - F.col("waiting_since"), F.lit(0)), F.lit(0))
    of_minute = minutes.groupBy(*GROUP, "minute").agg(
        F.max(age).alias("age_ms"), F.max(F.col("lag").isNull()).alias("is_unknown")
    )
    return of_minute.select(
        *GROUP, "minute", F.when(~F.col("is_unknown"), F.col("age_ms")).cast("long").alias("age_ms")
    )


def wait_days(minutes: DataFrame) -> DataFrame:
    """How old the oldest message was over the whole time: median, 95th percentile and most of its minutes."""
    known = minutes.where(F.col("age_ms").isNotNull())
    found = known.groupBy(*GROUP).agg(
        F.expr("percentile(age_ms, array(0.5D, 0.95D))").alias("percentiles"), F.max("age_ms").alias("wait_max_ms")
    )
    percentiles = F.col("percentiles")
    return found.select(
        *GROUP,
        F.round(percentiles[0]).cast("long").alias("wait_p50_ms"),
        F.round(percentiles[1]).cast("long").alias("wait_p95_ms"),
        "wait_max_ms",
    )


def group_hours(spans: DataFrame, moved: DataFrame) -> DataFrame:
    """Each hour of each group: for how long its lag is known, what it was, what came in and was consumed.

    Median and 95th percentile of the lag are weighted by how long it held.

    What moved over a gap is kept for the day's sums where the hour in which it ended is known, at least in part.
    """
    known = spans.groupBy(*GROUP, hour_of(F.col("at")).alias("hour")).agg(
        F.sum("held_ms").alias("known_ms"),
        F.max("lag").alias("lag_max"),
        (F.sum(F.col("lag") * F.col("held_ms")) / F.sum("held_ms")).alias("lag_mean"),
        F.max_by("lag", "at").alias("lag_last"),
        F.sum(F.when(F.col("is_over"), F.col("held_ms")).otherwise(0)).alias("over_ms"),
        F.expr("percentile(lag, array(0.5D, 0.95D), held_ms)").alias("percentiles"),
    )
    return known.join(moved, on=[*GROUP, "hour"], how="left").select(
        *GROUP,
        "hour",
        "known_ms",
        "lag_max",
        "lag_mean",
        "lag_last",
        F.round(F.col("percentiles")[0], 1).alias("lag_p50"),
        F.round(F.col("percentiles")[1], 1).alias("lag_p95"),
        "over_ms",
        *zero_for_null(*MOVED),
        "members",
    )


def peaks(hours: DataFrame) -> DataFrame:
    """What came in and was consumed a second in the hour of each group in which that was most; null: not known."""
    return hours.groupBy(*GROUP).agg(*_peaks()).select(*GROUP, "peak_in_s", "peak_out_s")


def group_days(spans: DataFrame, hours: DataFrame) -> DataFrame:
    """Each group over the whole time: percentiles of its lag weighted by how long it held, sums, the worst hour.

    Sums have what moved over gaps; the peaks, and what the drain goes by, have not.
    `peak_in_s`, `peak_out_s`: what came in and was consumed a second in the hour in which that was most.
    `drain_s`: how long the lag of the last hour would take at its pace; 0 without lag, null when it would never drain.
    """
    percentiles = spans.groupBy(*GROUP).agg(
        F.expr("percentile(lag, array(0.5D, 0.95D, 0.99D), held_ms)").alias("percentiles")
    )
    lag_mean = F.round("lag_mean", 1).alias("lag_mean")
    hour = F.struct("hour", "known_ms", "lag_max", lag_mean, "over_ms", "lag_p50", "lag_p95")
    sums = hours.groupBy(*GROUP).agg(
        *(F.sum(name).alias(name) for name in ("known_ms", "over_ms", "retry_wait_ms")),
        *(F.sum(F.col(name) + F.col(f"gap_{name}")).alias(name) for name in COUNTED),
        *_peaks(),
        F.max("lag_max").alias("lag_max"),
        F.max("members").alias("members"),
        F.max_by("hour", F.struct("over_ms", "lag_mean")).alias("worst_hour"),
        F.max_by(F.struct("lag_last", "known_ms", "produced", "retried", "consumed"), "hour").alias("last"),
        F.array_sort(F.collect_list(hour)).alias("hours"),
    )
    # Lag and what was consumed have retries, so what came has, too.
    came = F.col("last.produced") + F.col("last.retried")
    pace_per_s = (F.col("last.consumed") - came) * 1000 / F.col("last.known_ms")
    drain_s = F.when(F.col("last.lag_last") == 0, F.lit(0.0)).when(
        pace_per_s > 0, F.round(F.col("last.lag_last") / pace_per_s, 1)
    )
    lag_last, is_alone = F.col("last.lag_last"), F.coalesce(F.col("members"), F.lit(1)) == 0
    return sums.join(percentiles, on=[*GROUP], how="inner").select(
        *GROUP,
        "known_ms",
        "over_ms",
        F.round(F.col("percentiles")[0], 1).alias("lag_p50"),
        F.round(F.col("percentiles")[1], 1).alias("lag_p95"),
        F.round(F.col("percentiles")[2], 1).alias("lag_p99"),
        "lag_max",
        lag_last.alias("lag_last"),
        drain_s.alias("drain_s"),
        "worst_hour",
        "produced",
        "consumed",
        "retried",
        "dead",
        "retry_wait_ms",
        "peak_in_s",
        "peak_out_s",
        "members",
        ((F.col("produced") == 0) & (F.col("consumed") == 0)).alias("is_quiet"),
        (is_alone & (lag_last > 0)).alias("is_abandoned"),
        "hours",
    )


def _change(at: Column, *, open_: Column, lag: Column, unknown: Column, over: Column, allowed: Column) -> Column:
    return F.struct(
        at.alias("at"),
        open_.cast("int").alias("open"),
        lag.cast("long").alias("lag"),
        unknown.cast("int").alias("unknown"),
        over.cast("int").alias("over"),
        allowed.alias("allowed"),
    )


def _peaks() -> list[Column]:
    """What moved a second in the hour in which that was most; null without an hour that is known for long enough."""
    is_known = F.col("known_ms") >= PEAK_KNOWN_MS_MIN
    return [
        F.round(F.max(F.when(is_known, F.col(moved) * 1000 / F.col("known_ms"))), 3).alias(peak)
        for moved, peak in (("produced", "peak_in_s"), ("consumed", "peak_out_s"))
    ]
