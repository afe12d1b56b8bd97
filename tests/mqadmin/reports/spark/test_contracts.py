"""Each step gives the columns of its stated schema, in their order and types; what is NOT NULL never is null.

Spark itself takes every column that comes from a file or an outer join for nullable, so that part is looked for in the
rows of random days: with gaps, resets, and offsets that are not known.
"""

from __future__ import annotations

import inspect
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mqadmin.reports.history import LAG
from mqadmin.reports.spark_job import EVENT_DDL, LAG_DDL, OBJECTIVE_DDL
from tests.support.lag_rows import OBJECTIVE_MS, START_S, random_moves

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

DAY_MS = 86_400_000
GROUP = "cluster string!, consumer_group string!"
MOVED = (
    "produced bigint!, consumed bigint!, retried bigint!, dead bigint!, gap_produced bigint!, gap_consumed bigint!, "
    "gap_retried bigint!, gap_dead bigint!, retry_wait_ms bigint!"
)
# Of each step its columns; `!` is NOT NULL. In structs and arrays types alone are stated.
SCHEMAS = {
    "topic_spans": f"{GROUP}, topic string!, kind string!, at bigint!, until bigint!, verdict string!, members int, "
    "lag bigint, keys array<bigint>!, ends array<bigint>!, committed array<bigint>!, waiting_since bigint",
    "judged": f"{GROUP}, topic string!, kind string!, at bigint!, until bigint!, lag bigint, waiting_since bigint, "
    "objective_ms bigint!, allowed_lag bigint!",
    "group_spans": f"{GROUP}, at bigint!, held_ms bigint!, lag bigint!, is_over boolean!",
    "new_topics": f"{GROUP}, topic string!, began_at bigint!, group_until bigint!",
    "group_minutes": f"{GROUP}, minute bigint!, age_ms bigint",
    "wait_days": f"{GROUP}, wait_p50_ms bigint!, wait_p95_ms bigint!, wait_max_ms bigint!",
    "flows": f"{GROUP}, hour bigint!, {MOVED}, members int",
    "group_hours": f"{GROUP}, hour bigint!, known_ms bigint!, lag_max bigint!, lag_mean double!, lag_last bigint!, "
    f"lag_p50 double!, lag_p95 double!, over_ms bigint!, {MOVED}, members int",
    "peaks": f"{GROUP}, peak_in_s double, peak_out_s double",
    "group_days": f"{GROUP}, known_ms bigint!, over_ms bigint!, lag_p50 double!, lag_p95 double!, lag_p99 double!, "
    "lag_max bigint!, lag_last bigint!, drain_s double, worst_hour bigint!, produced bigint!, consumed bigint!, "
    "retried bigint!, dead bigint!, retry_wait_ms bigint!, peak_in_s double, peak_out_s double, members int, "
    "is_quiet boolean!, is_abandoned boolean!, "
    "hours array<struct<hour:bigint,known_ms:bigint,lag_max:bigint,lag_mean:double,over_ms:bigint,"
    "lag_p50:double,lag_p95:double>>!",
    "queue_days": f"{GROUP}, topic string!, broker string!, queue int!, lag_mean double, lag_max bigint, "
    "produced bigint, skew double, produced_skew double",
    "hot_queues": f"{GROUP}, hot_queue struct<topic:string,broker:string,queue:int,lag_mean:double,skew:double>!",
    "skewed_queues": f"{GROUP}, skewed_queue struct<topic:string,broker:string,queue:int,produced:bigint,skew:double>!",
    "before": f"{GROUP}, produced_before bigint!, over_ms_before bigint!, lag_p95_before double!, dead_before bigint!",
    "growth": f"{GROUP}, growth double",
    "anomalies": f"{GROUP}, anomalies array<struct<hour:bigint,reason:string,value:double,usual:double>>!",
    "forecasts": f"{GROUP}, forecast_in_s double!, forecast_low_s double!, forecast_high_s double!, most_out_s double",
    "churn": f"{GROUP}, rebalance_count bigint!, moved_queues bigint!, lost_members bigint!",
    "top_failures": f"{GROUP}, failures array<struct<failure:string,origin_topic:string,dead:bigint>>!",
    "conflict_days": f"{GROUP}, conflict_ms bigint!, conflict_kind string!",
    "delivery_days": f"{GROUP}, delivered bigint!, delivery_p50_ms bigint!, delivery_p95_ms bigint!, "
    "delivery_p99_ms bigint!, "
    "deliveries array<struct<topic:string,delivered:bigint,p50_ms:bigint,p95_ms:bigint,p99_ms:bigint>>!",
}
AT = datetime.fromtimestamp(START_S, UTC)
KEY = ("c", "a", AT)
EVENTS: dict[str, list[tuple[Any, ...]]] = {
    "rebalances": [(*KEY, "lost", "m", 0, "watch"), (*KEY, "queues_moved", "m", 4, "poll")],
    "dead_letters": [(*KEY, "orders", "", "shop.Late", "", 3), (*KEY, "orders", "", "", "", 0)],
    "conflicts": [(*KEY, AT + timedelta(minutes=5), "topics", "")],
    "deliveries": [(*KEY, "orders", [10, 80], [11, 81], [99, 1])],
}


@pytest.fixture(scope="module")
def frames(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DataFrame]:
    """What each step gives of a random history and some events."""
    from pyspark.sql import functions as F

    from mqadmin.reports import (  # needs PySpark
        comparing,
        delivery_steps,
        event_steps,
        flow_steps,
        queue_steps,
        step_columns,
        steps,
    )

    path: Path = tmp_path_factory.mktemp("contracts") / "history.parquet"
    pq.write_table(pa.Table.from_pylist(random_moves(random.Random(13)), schema=LAG), path)
    history = spark.read.schema(LAG_DDL).parquet(str(path))
    objectives = spark.createDataFrame([("a", 0, 2**62, 5_000, 30)], OBJECTIVE_DDL)
    found = {"topic_spans": steps.topic_spans(history)}
    found["judged"] = steps.judged(found["topic_spans"], objectives, OBJECTIVE_MS)
    found["group_spans"] = steps.group_spans(found["judged"])
    found["group_minutes"] = steps.group_minutes(found["topic_spans"])
    found["wait_days"] = steps.wait_days(found["group_minutes"])
    found["new_topics"] = flow_steps.new_topics(found["topic_spans"])
    found["flows"] = flow_steps.flows(found["topic_spans"])
    found["group_hours"] = hours = steps.group_hours(found["group_spans"], found["flows"]).cache()
    found["group_days"] = days = steps.group_days(found["group_spans"], hours).cache()
    found["peaks"] = steps.peaks(hours)
    found["queue_days"] = queue_steps.queue_days(history)
    # Of one queue a topic: as if each were one of many.
    skewed = found["queue_days"].withColumns({"skew": F.lit(3.0), "produced_skew": F.lit(3.0)})
    found["hot_queues"], found["skewed_queues"] = queue_steps.hot_queues(skewed), queue_steps.skewed_queues(skewed)
    found["before"] = comparing.before(days)
    week_before = hours.withColumn("hour", F.col("hour") - 7 * DAY_MS)
    found["growth"] = comparing.growth(hours, week_before, 7 * DAY_MS)
    usual = [hours.withColumn("hour", F.col("hour") - number * DAY_MS) for number in (1, 2, 3)]
    flooded = hours.withColumn("produced", F.col("produced") + 1_000_000)
    found["anomalies"] = comparing.anomalies(flooded, usual[0].unionByName(usual[1]).unionByName(usual[2]))
    trend = days.select(
        *step_columns.GROUP, F.explode(F.sequence(F.lit(1), F.lit(9))).alias("day"), "peak_in_s", "peak_out_s"
    )
    found["forecasts"] = comparing.forecasts(trend)
    events = {kind: spark.createDataFrame(rows, EVENT_DDL[kind]) for kind, rows in EVENTS.items()}
    found["churn"] = event_steps.churn(events["rebalances"])
    found["top_failures"] = event_steps.top_failures(events["dead_letters"])
    found["conflict_days"] = event_steps.conflict_days(events["conflicts"])
    found["delivery_days"] = delivery_steps.delivery_days(events["deliveries"])
    return found


def columns(schema: str) -> list[tuple[str, str, bool]]:
    """Reads a stated schema: name, type, NOT NULL."""
    stated = []
    for column in schema.split(", "):
        name, kind = column.split(" ")
        stated.append((name, kind.removesuffix("!"), kind.endswith("!")))
    return stated


@pytest.mark.parametrize("step", SCHEMAS)
def test_a_step_gives_its_stated_schema(frames: dict[str, DataFrame], step: str) -> None:
    stated = columns(SCHEMAS[step])
    fields = frames[step].schema.fields
    assert [(field.name, field.dataType.simpleString()) for field in fields] == [
        (name, kind) for name, kind, _ in stated
    ]
    rows = frames[step].collect()
    assert rows, "there is something to look at"
    nulls = {name for name, _, is_needed in stated if is_needed for row in rows if row[name] is None}
    assert nulls == set()


def test_every_step_has_a_stated_schema(frames: dict[str, DataFrame]) -> None:
    from mqadmin.reports import comparing, delivery_steps, event_steps, flow_steps, queue_steps, steps  # needs PySpark

    public = {
        name
        for module in (steps, flow_steps, queue_steps, comparing, event_steps, delivery_steps)
        for name, one in inspect.getmembers(module, inspect.isfunction)
        if one.__module__ == module.__name__ and not name.startswith("_")
    }
    assert set(SCHEMAS) == set(frames) == public
