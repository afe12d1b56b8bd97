"""What the steps of a report have in common: their keys, and columns that several of them compute.

Times are milliseconds since the epoch, durations milliseconds; what is not known is null.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

HOUR_MS = 3_600_000
GROUP = ("cluster", "consumer_group")
# What is counted from sample to sample.
COUNTED = ("produced", "consumed", "retried", "dead")
# What is summed up by hour; `gap_…` is what moved over a gap, or while an offset was not known.
MOVED = (*COUNTED, *(f"gap_{name}" for name in COUNTED), "retry_wait_ms")


def waiting(end: Column, committed: Column) -> Column:
    """Messages that wait in a queue; null where an offset is not known. A queue that never had one has none."""
    messages = end - committed
    return F.when(end == 0, F.lit(0)).when(messages < 0, F.lit(0)).otherwise(messages)


def total(numbers: Column) -> Column:
    """The sum over an array; null where one of its numbers is."""
    return F.aggregate(numbers, F.lit(0).cast("long"), lambda so_far, one: so_far + one)


def hour_of(at: Column) -> Column:
    """The beginning of the hour in which the moment is."""
    return F.floor(at / F.lit(HOUR_MS)).cast("long") * F.lit(HOUR_MS)


def zero_for_null(*names: str) -> list[Column]:
    """The columns of these names, with 0 where they are null."""
    return [F.coalesce(F.col(name), F.lit(0)).alias(name) for name in names]
