"""Steps that count what came in and was consumed from sample to sample. No Python UDF.

`topics` is what `steps.topic_spans` gives. Offsets before and after a time that is not known say how many messages
moved meanwhile, not when: they belong to no hour, and stand as `gap_…` beside what moved in the hours.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqadmin.reports.step_columns import GROUP, MOVED, hour_of, total, zero_for_null


def new_topics(topics: DataFrame) -> DataFrame:
    """The topics of retries and dead letters that began while their group was sampled: nothing was in them before.

    `group_until`: until when the group had been sampled then. What a group reads otherwise may be old, and new to the
    group alone; so may be all topics of a group that is seen for the first time.
    """
    # Joined by group, as what is read here lies, and by a table of what is few: nothing is sorted or shuffled for it.
    began = topics.where(F.col("kind") != "normal").groupBy(*GROUP, "topic").agg(F.min("at").alias("began_at"))
    earlier = topics.select(*GROUP, "at", "until").join(began.hint("shuffle_hash"), on=[*GROUP], how="inner")
    return (
        earlier.where(F.col("at") < F.col("began_at"))
        .groupBy(*GROUP, "topic", "began_at")
        .agg(F.max("until").alias("group_until"))
        .select(*GROUP, "topic", "began_at", "group_until")
    )


def flows(topics: DataFrame) -> DataFrame:
    """What came in and was consumed from sample to sample, by hour. An end that fell (made anew) counts as 0.

    Each queue is held against itself: one that is new, or was reset, takes nothing from the others and adds nothing.
    A topic that is new itself (`new_topics`) counts from 0.
    A step counts in the hour of its later sample when the earlier one held until then. Over a gap, or where an offset
    was not known in between, or the queue was not there (its broker was away), it is counted from the last sample that
    was known, as `gap_…` of the hour in which it ended.
    `retry_wait_ms`: for how long messages waited in the retry topic, all together.
    """
    of_topic = Window.partitionBy(*GROUP, "topic").orderBy("at")
    before = of_topic.rowsBetween(Window.unboundedPreceding, -1)
    sampled = ("keys", "ends", "committed")
    # Of dead letters nothing is committed; of all others both are known where the lag is.
    is_known = F.when(F.col("kind") == "dead", ~F.exists("ends", lambda end: end.isNull())).otherwise(
        F.col("lag").isNotNull()
    )
    nothing = F.transform("ends", lambda _end: F.lit(0).cast("long"))
    group_until = F.try_element_at("new", F.col("topic"))
    empty = F.struct("keys", nothing.alias("ends"), nothing.alias("committed"), group_until.alias("until"))
    last_known = F.last(F.when(is_known, F.struct(*sampled, "until")), ignorenulls=True).over(before)
    began = F.collect_list(F.struct("topic", "group_until"))
    new = new_topics(topics).groupBy(*GROUP).agg(F.map_from_entries(began).alias("new"))
    placed = topics.join(new.hint("shuffle_hash"), on=[*GROUP], how="left").select(
        *GROUP,
        "topic",
        "kind",
        "at",
        "members",
        F.when(is_known, F.struct(*sampled)).alias("now"),
        F.coalesce(last_known, F.when(group_until.isNotNull(), empty)).alias("before"),
        F.when(F.col("kind") == "retry", F.col("lag") * (F.col("until") - F.col("at"))).alias("retry_wait_ms"),
    )
    # A queue is hardly ever gone, so hardly anything is collected.
    parted = placed.withColumn("gone", F.flatten(F.collect_list(_gone_now()).over(before)))
    is_over_gap = F.col("before.until") < F.col("at")
    moved = parted.select(
        *GROUP,
        "kind",
        "at",
        "members",
        "retry_wait_ms",
        *(F.when(~is_over_gap, _grown(name)).alias(name) for name in ("ends", "committed")),
        *(
            (F.coalesce(F.when(is_over_gap, _grown(name)), F.lit(0)) + _grown_while_gone(name)).alias(f"gap_{name}")
            for name in ("ends", "committed")
        ),
    )
    return (
        moved.groupBy(*GROUP, hour_of(F.col("at")).alias("hour"))
        .agg(
            *_moved(""),
            *_moved("gap_"),
            F.sum("retry_wait_ms").alias("retry_wait_ms"),
            F.max("members").alias("members"),
        )
        .select(*GROUP, "hour", *zero_for_null(*MOVED), "members")
    )


def _moved(prefix: str) -> list[Column]:
    """What moved by the steps in columns of this prefix."""
    came, went, kind = F.col(f"{prefix}ends"), F.col(f"{prefix}committed"), F.col("kind")
    figures = (
        ("produced", came, kind == "normal"),
        ("consumed", went, kind != "dead"),
        ("retried", came, kind == "retry"),
        ("dead", came, kind == "dead"),
    )
    return [F.sum(F.when(is_meant, grown)).alias(prefix + name) for name, grown, is_meant in figures]


def _is_same_queues() -> Column:
    return F.col("now.keys") == F.col("before.keys")


def _grown(name: str) -> Column:
    """How much the offsets of the queues are more than at the last sample that was known."""
    was = F.transform("now.keys", lambda key: F.get(f"before.{name}", _place(key, F.col("before.keys"))))
    return _growth(F.col(f"now.{name}"), F.when(_is_same_queues(), F.col(f"before.{name}")).otherwise(was))


def _gone_now() -> Column:
    """The queues that the last known sample had and this one has not, as they were; null where there are none."""
    before = F.arrays_zip("before.keys", "before.ends", "before.committed")
    return F.when(
        ~_is_same_queues(), F.filter(before, lambda queue: ~F.array_contains(F.col("now.keys"), queue["keys"]))
    )


def _grown_while_gone(name: str) -> Column:
    """How much the offsets of queues that are back are more than when they were last seen; 0 without any."""

    def was(key: Column) -> Column:
        seen = F.filter("gone", lambda queue: queue["keys"] == key)
        return F.when(_place(key, F.col("before.keys")) < 0, F.get(seen, F.size(seen) - 1)[name])

    grown = _growth(F.col(f"now.{name}"), F.transform("now.keys", was))
    return F.when(~_is_same_queues() & (F.size("gone") > 0), grown).otherwise(F.lit(0))


def _growth(now: Column, was: Column) -> Column:
    """The sum of what each number has more; one that fell, or that is not known on a side, adds nothing."""
    nothing = F.lit(0).cast("long")
    # `greatest` passes over what is null.
    return total(F.zip_with(now, was, lambda one, other: F.greatest(one - other, nothing)))


def _place(key: Column, keys: Column) -> Column:
    """Where a key is in an array, from 0; negative where it is not."""
    return (F.array_position(keys, key) - 1).cast("int")
