"""Steps over what is no sample: rebalances, dead letters by failure, subscriptions that differ. No Python UDF."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqadmin.reports.step_columns import GROUP

# Of one group: what a person looks into.
FAILURES_MAX = 5


def churn(rebalances: DataFrame) -> DataFrame:
    """Counts each group's rebalance events, the queues that they moved, and members that were lost or found missing."""
    is_lost = F.col("kind").isin("lost", "gone")
    return (
        rebalances.groupBy(*GROUP)
        .agg(
            F.count("*").alias("rebalance_count"),
            F.sum("moved_queues").alias("moved_queues"),
            F.sum(is_lost.cast("int")).alias("lost_members"),
        )
        .select(*GROUP, "rebalance_count", "moved_queues", "lost_members")
    )


def top_failures(failures: DataFrame) -> DataFrame:
    """What most messages of each group died of, FAILURES_MAX at most; without an error's class, the origin topic."""
    name = F.when(F.col("failure_class") != "", F.col("failure_class")).otherwise(F.col("origin_topic"))
    counted = failures.groupBy(*GROUP, name.alias("failure"), "origin_topic").agg(F.sum("dead_count").alias("dead"))
    # The most first, names in the order of the alphabet.
    ordered = F.array_sort(F.collect_list(F.struct((-F.col("dead")).alias("less"), "failure", "origin_topic", "dead")))
    return (
        counted.where(F.col("dead") > 0)
        .groupBy(*GROUP)
        .agg(F.slice(ordered, 1, FAILURES_MAX).alias("failures"))
        .select(
            *GROUP,
            F.transform("failures", lambda one: F.struct(one["failure"], one["origin_topic"], one["dead"])).alias(
                "failures"
            ),
        )
    )


def conflict_days(conflicts: DataFrame) -> DataFrame:
    """For how long members of each group did not want the same, and what that was about for longest."""
    held_ms = F.unix_millis("until") - F.unix_millis("at")
    kinds = conflicts.groupBy(*GROUP, "kind").agg(F.sum(held_ms).alias("held_ms"))
    return (
        kinds.groupBy(*GROUP)
        .agg(
            F.sum("held_ms").alias("conflict_ms"),
            F.max_by("kind", F.struct("held_ms", "kind")).alias("conflict_kind"),
        )
        .select(*GROUP, "conflict_ms", "conflict_kind")
    )
