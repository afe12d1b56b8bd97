"""The steps of a report: each a pure function of DataFrames whose closing `select` is its contract. No Python UDF.

    history ──► topic_spans ──► group_spans ──┐
       │             └────────► flows ────────┼─► group_hours ──► group_days ──► with_growth
       └──► queue_days ──► hot_queues ────────────────────────────────┘

Times are milliseconds since the epoch, durations milliseconds; what is not known is null. A time in which the lag of
one queue of a group is not known is no part of any figure of that group.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

HOUR_MS = 3_600_000
GROUP = ("cluster", "consumer_group")
RETRY_PREFIX = "%RETRY%"
DEAD_PREFIX = "%DLQ%"
# A queue is hot when it has this share more than an even one: half of the lag on one of eight queues is a skew of 4.
SKEW_MIN = 2.0


def topic_spans(history: DataFrame) -> DataFrame:
    """One row of the history each: the sums over its queues. `lag` is null where an offset of a queue is not known."""
    topic = F.col("topic")
    kind = (
        F.when(topic.startswith(RETRY_PREFIX), F.lit("retry"))
        .when(topic.startswith(DEAD_PREFIX), F.lit("dead"))
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
        _total(F.zip_with("ends", "committed", _lag)).alias("lag"),
        _total(F.col("ends")).alias("end_total"),
        _total(F.col("committed")).alias("committed_total"),
        F.array_min(F.filter("waiting_since_ms", lambda moment: moment > 0)).alias("waiting_since"),
    )


def group_spans(topics: DataFrame, objective_ms: int) -> DataFrame:
    """The lag of each group from change to change: the sum over its topics, retries included, dead letters not.

    `is_over`: the oldest message of some topic had been waiting for longer than the objective.
    """
    # `greatest` passes over what is null; where nothing waits, nothing is over.
    over_from = F.when(
        F.col("waiting_since").isNotNull(), F.greatest(F.col("at"), F.col("waiting_since") + F.lit(objective_ms))
    )
    is_known = F.col("lag").isNotNull()
    lag = F.coalesce(F.col("lag"), F.lit(0))
    unknown = F.when(is_known, 0).otherwise(1)
    changes = [
        _change(F.col("at"), open_=F.lit(1), lag=lag, unknown=unknown, over=F.lit(0)),
        _change(F.col("until"), open_=F.lit(-1), lag=-lag, unknown=-unknown, over=F.lit(0)),
        _change(over_from, open_=F.lit(0), lag=F.lit(0), unknown=F.lit(0), over=F.lit(1)),
        _change(F.col("until"), open_=F.lit(0), lag=F.lit(0), unknown=F.lit(0), over=F.lit(-1)),
    ]
    is_ever_over = over_from < F.col("until")
    at_moments = (
        topics.where(F.col("kind") != "dead")
        .select(*GROUP, F.explode(F.when(is_ever_over, F.array(*changes)).otherwise(F.array(*changes[:2]))).alias("c"))
        .groupBy(*GROUP, F.col("c.at").alias("at"))
        .agg(*(F.sum(f"c.{name}").alias(name) for name in ("open", "lag", "unknown", "over")))
    )
    of_group = Window.partitionBy(*GROUP).orderBy("at")
    so_far = of_group.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    running = at_moments.select(
        *GROUP,
        "at",
        (F.lead("at").over(of_group) - F.col("at")).alias("held_ms"),
        *(F.sum(name).over(so_far).alias(name) for name in ("open", "lag", "unknown", "over")),
    )
    is_sampled = (F.col("open") > 0) & (F.col("unknown") == 0) & F.col("held_ms").isNotNull()
    return running.where(is_sampled).select(*GROUP, "at", "held_ms", "lag", (F.col("over") > 0).alias("is_over"))


def flows(topics: DataFrame) -> DataFrame:
    """What came in and was consumed from sample to sample, by hour. An end that fell (a new topic) counts as 0."""
    of_topic = Window.partitionBy(*GROUP, "topic").orderBy("at")
    moved = topics.select(
        *GROUP,
        "kind",
        _hour(F.col("at")).alias("hour"),
        "members",
        _growth("end_total", of_topic).alias("came"),
        _growth("committed_total", of_topic).alias("went"),
    )
    return (
        moved.groupBy(*GROUP, "hour")
        .agg(
            _sum_where("came", "normal").alias("produced"),
            F.sum(F.when(F.col("kind") != "dead", F.col("went"))).alias("consumed"),
            _sum_where("came", "retry").alias("retried"),
            _sum_where("came", "dead").alias("dead"),
            F.max("members").alias("members"),
        )
        .select(*GROUP, "hour", *_zero_for_null("produced", "consumed", "retried", "dead"), "members")
    )


def group_hours(spans: DataFrame, moved: DataFrame) -> DataFrame:
    """Each hour of each group: for how long its lag is known, what it was, what came in and was consumed."""
    known = spans.groupBy(*GROUP, _hour(F.col("at")).alias("hour")).agg(
        F.sum("held_ms").alias("known_ms"),
        F.max("lag").alias("lag_max"),
        (F.sum(F.col("lag") * F.col("held_ms")) / F.sum("held_ms")).alias("lag_mean"),
        F.max_by("lag", "at").alias("lag_last"),
        F.sum(F.when(F.col("is_over"), F.col("held_ms")).otherwise(0)).alias("over_ms"),
    )
    return known.join(moved, on=[*GROUP, "hour"], how="left").select(
        *GROUP,
        "hour",
        "known_ms",
        "lag_max",
        "lag_mean",
        "lag_last",
        "over_ms",
        *_zero_for_null("produced", "consumed", "retried", "dead"),
        "members",
    )


def group_days(spans: DataFrame, hours: DataFrame) -> DataFrame:
    """Each group over the whole time: percentiles of its lag weighted by how long it held, sums, the worst hour.

    `drain_s`: how long the lag of the last hour would take at its pace; 0 without lag, null when it would never drain.
    """
    percentiles = spans.groupBy(*GROUP).agg(
        F.expr("percentile(lag, array(0.5D, 0.95D, 0.99D), held_ms)").alias("percentiles")
    )
    hour = F.struct("hour", "known_ms", "lag_max", F.round("lag_mean", 1).alias("lag_mean"), "over_ms")
    sums = hours.groupBy(*GROUP).agg(
        *(F.sum(name).alias(name) for name in ("known_ms", "over_ms", "produced", "consumed", "retried", "dead")),
        F.max("lag_max").alias("lag_max"),
        F.max("members").alias("members"),
        F.max_by("hour", F.struct("over_ms", "lag_mean")).alias("worst_hour"),
        F.max_by(F.struct("lag_last", "known_ms", "produced", "consumed"), "hour").alias("last"),
        F.array_sort(F.collect_list(hour)).alias("hours"),
    )
    pace_per_s = (F.col("last.consumed") - F.col("last.produced")) * 1000 / F.col("last.known_ms")
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
        "members",
        ((F.col("produced") == 0) & (F.col("consumed") == 0)).alias("is_quiet"),
        (is_alone & (lag_last > 0)).alias("is_abandoned"),
        "hours",
    )


def queue_days(history: DataFrame) -> DataFrame:
    """Each queue over the whole time. `skew`: its mean lag over that of an even queue of its topic."""
    held_ms = F.unix_millis("until") - F.unix_millis("at")
    of_queue = F.explode(F.arrays_zip("brokers", "queues", "committed", "ends")).alias("q")
    lag = _lag(F.col("q.ends"), F.col("q.committed"))
    queues = (
        history.where(~F.col("topic").startswith(DEAD_PREFIX))
        .select(*GROUP, "topic", held_ms.alias("held_ms"), of_queue)
        .groupBy(*GROUP, "topic", F.col("q.brokers").alias("broker"), F.col("q.queues").alias("queue"))
        .agg(
            (F.sum(lag * F.col("held_ms")) / F.sum("held_ms")).alias("lag_mean"),
            F.max(lag).alias("lag_max"),
            (F.max("q.ends") - F.min("q.ends")).alias("produced"),
        )
    )
    of_topic = Window.partitionBy(*GROUP, "topic")
    even = F.avg("lag_mean").over(of_topic)
    skew = F.when(even > 0, F.round(F.col("lag_mean") / even, 2))
    return queues.select(
        *GROUP,
        "topic",
        "broker",
        "queue",
        F.round("lag_mean", 1).alias("lag_mean"),
        "lag_max",
        "produced",
        skew.alias("skew"),
    )


def hot_queues(queues: DataFrame) -> DataFrame:
    """The queue of each group that has most lag, where it has SKEW_MIN times that of an even one."""
    hot = F.struct("topic", "broker", "queue", "lag_mean", "skew")
    return (
        queues.where(F.col("skew") >= SKEW_MIN)
        .groupBy(*GROUP)
        .agg(F.max_by(hot, F.struct("lag_mean", "topic", "broker", "queue")).alias("hot_queue"))
        .select(*GROUP, "hot_queue")
    )


def with_growth(days: DataFrame, hot: DataFrame, before: DataFrame) -> DataFrame:
    """The days with their hot queue, and beside them the same figures of the same weekday a week before."""
    earlier = before.select(
        *GROUP,
        F.col("produced").alias("produced_before"),
        F.col("over_ms").alias("over_ms_before"),
        F.col("lag_p95").alias("lag_p95_before"),
    )
    joined = days.join(hot, on=[*GROUP], how="left").join(earlier, on=[*GROUP], how="left")
    return joined.select(*days.columns, "hot_queue", "produced_before", "over_ms_before", "lag_p95_before")


def _lag(end: Column, committed: Column) -> Column:
    """Messages that wait in a queue; null where an offset is not known. A queue that never had one has none."""
    waiting = end - committed
    return F.when(end == 0, F.lit(0)).when(waiting < 0, F.lit(0)).otherwise(waiting)


def _total(numbers: Column) -> Column:
    """The sum over an array; null where one of its numbers is."""
    return F.aggregate(numbers, F.lit(0).cast("long"), lambda total, one: total + one)


def _change(at: Column, *, open_: Column, lag: Column, unknown: Column, over: Column) -> Column:
    return F.struct(
        at.alias("at"),
        open_.cast("int").alias("open"),
        lag.cast("long").alias("lag"),
        unknown.cast("int").alias("unknown"),
        over.cast("int").alias("over"),
    )


def _growth(name: str, window: WindowSpec) -> Column:
    grown = F.col(name) - F.lag(name).over(window)
    return F.when(grown > 0, grown).otherwise(F.lit(0))


def _hour(at: Column) -> Column:
    return F.floor(at / F.lit(HOUR_MS)).cast("long") * F.lit(HOUR_MS)


def _sum_where(name: str, kind: str) -> Column:
    return F.sum(F.when(F.col("kind") == kind, F.col(name)))


def _zero_for_null(*names: str) -> list[Column]:
    return [F.coalesce(F.col(name), F.lit(0)).alias(name) for name in names]
