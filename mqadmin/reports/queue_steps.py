"""Steps that compare the queues of a topic with each other. No Python UDF.

`history` is the history of samples, as it lies in its files; `queues` is what `queue_days` gives.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqadmin.reports.step_columns import GROUP, waiting
from remoting.wire.names import DLQ_PREFIX, RETRY_PREFIX

# A queue is hot when it has this share more than an even one: half of the lag on one of eight queues is a skew of 4.
SKEW_MIN = 2.0
# Fewer messages in a day say nothing of how keys are spread.
SKEWED_PRODUCED_MIN = 100


def queue_days(history: DataFrame) -> DataFrame:
    """Each queue over the whole time. `skew`: its mean lag over that of an even queue of its topic.

    `produced_skew`: the same of what came into it. Of a topic that was made anew that is what came before and since;
    where it has grown beyond its old end, what came since.
    """
    held_ms = F.unix_millis("until") - F.unix_millis("at")
    of_queue = F.explode(F.arrays_zip("brokers", "queues", "committed", "ends")).alias("q")
    lag = waiting(F.col("q.ends"), F.col("q.committed"))
    queues = (
        history.where(~F.col("topic").startswith(DLQ_PREFIX))
        .select(*GROUP, "topic", "at", held_ms.alias("held_ms"), of_queue)
        .groupBy(*GROUP, "topic", F.col("q.brokers").alias("broker"), F.col("q.queues").alias("queue"))
        .agg(
            (F.sum(lag * F.col("held_ms")) / F.sum(F.when(lag.isNotNull(), F.col("held_ms")))).alias("lag_mean"),
            F.max(lag).alias("lag_max"),
            _came().alias("produced"),
        )
    )
    of_topic = Window.partitionBy(*GROUP, "topic")

    def skew(name: str) -> Column:
        even = F.avg(name).over(of_topic)
        return F.when(even > 0, F.round(F.col(name) / even, 2))

    return queues.select(
        *GROUP,
        "topic",
        "broker",
        "queue",
        F.round("lag_mean", 1).alias("lag_mean"),
        "lag_max",
        "produced",
        skew("lag_mean").alias("skew"),
        skew("produced").alias("produced_skew"),
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


def skewed_queues(queues: DataFrame) -> DataFrame:
    """The queue of each group into which most came, where that is SKEW_MIN times an even share: keys are uneven."""
    skewed = F.struct("topic", "broker", "queue", "produced", F.col("produced_skew").alias("skew"))
    is_skewed = (F.col("produced_skew") >= SKEW_MIN) & (F.col("produced") >= SKEWED_PRODUCED_MIN)
    return (
        queues.where(is_skewed & ~F.col("topic").startswith(RETRY_PREFIX))
        .groupBy(*GROUP)
        .agg(F.max_by(skewed, F.struct("produced", "topic", "broker", "queue")).alias("skewed_queue"))
        .select(*GROUP, "skewed_queue")
    )


def _came() -> Column:
    """What came into a queue, by its ends alone, so that rows need not be put in order: an end falls with its topic."""
    end = F.col("q.ends")
    known_at = F.when(end.isNotNull(), F.col("at"))
    first, last, least, most = F.min_by(end, known_at), F.max_by(end, known_at), F.min(end), F.max(end)
    return (
        F.when(last < most, most - first + last - least)
        # Made anew with an end below the first, and beyond it by now.
        .otherwise(last - least)
    )
