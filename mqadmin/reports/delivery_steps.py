"""Steps over how long deliveries took, counted in buckets by members of our runtime. No Python UDF."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqadmin.reports.step_columns import GROUP

# Of one group, the ones of which most was consumed: what a person reads.
TOPICS_MAX = 20


def delivery_days(deliveries: DataFrame) -> DataFrame:
    """Each group's delivery latency over the whole time, and that of its topics: median, 95th and 99th percentile.

    A duration counts as the middle of its bucket. `deliveries`: of the topics, the one with most first.
    """
    pair = F.explode(F.arrays_zip("from_ms", "to_ms", "counts")).alias("one")
    counted = deliveries.select(*GROUP, "topic", pair).select(
        *GROUP,
        "topic",
        ((F.col("one.from_ms") + F.col("one.to_ms") - 1) / 2).alias("took_ms"),
        F.col("one.counts").alias("delivered"),
    )
    topics = counted.groupBy(*GROUP, "topic").agg(*_percentiles())
    of_topic = F.struct((-F.col("delivered")).alias("less"), "topic", "delivered", "p50_ms", "p95_ms", "p99_ms")
    listed = (
        topics.groupBy(*GROUP)
        .agg(F.slice(F.array_sort(F.collect_list(of_topic)), 1, TOPICS_MAX).alias("deliveries"))
        .select(*GROUP, F.transform("deliveries", lambda one: one.dropFields("less")).alias("deliveries"))
    )
    groups = counted.groupBy(*GROUP).agg(*_percentiles())
    return groups.join(listed, on=[*GROUP], how="inner").select(
        *GROUP,
        "delivered",
        *(F.col(name).alias(f"delivery_{name}") for name in ("p50_ms", "p95_ms", "p99_ms")),
        "deliveries",
    )


def _percentiles() -> tuple[Column, ...]:
    """How much was counted, and within how long half of it, 95 % and 99 % was delivered."""
    found = F.expr("percentile(took_ms, array(0.5D, 0.95D, 0.99D), delivered)")
    return (
        F.sum("delivered").alias("delivered"),
        *(
            F.round(found[number]).cast("long").alias(name)
            for number, name in enumerate(("p50_ms", "p95_ms", "p99_ms"))
        ),
    )
