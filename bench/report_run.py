"""One report in a process of its own: `python -m bench.report_run spark|pyarrow HISTORY DAY OUT`. Prints JSON.

`pyarrow` computes what fits of it with PyArrow and NumPy, all in memory: each queue over the day, each hour of each
group, and the percentiles; no time over the objective, nothing that goes by a row and the one before.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import django
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.lag_samples import CLUSTER
from bench.report_facts import earlier_folders, objectives
from mqadmin.reports.history import History
from mqadmin.reports.spark_driver import SparkConfig, settings_for, spark_session

# What groups have where events, objectives or the days before were there.
FOUND = ("growth", "forecast_in_s", "rebalance_count", "failures", "conflict_ms", "delivered")


def spark(history: Path, day: date, out: Path) -> dict[str, object]:
    """Makes all figures: with the events of the day, objectives, and the results of 28 days before."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")
    django.setup()
    from mqadmin.reports import spark_job  # its models need Django to be set up
    from mqadmin.reports.judging import Judged  # likewise

    kept = History(history)
    allowed = [Judged(**one) for one in objectives(day, len(kept.groups(CLUSTER, day)))]
    unit = spark_job.Unit(CLUSTER, day, allowed, earlier_folders(history.parent / "earlier"))
    began_s = time.perf_counter()
    master = os.environ.get("SPARK_MASTER", "local[*]")
    history_bytes = sum(path.stat().st_size for path in kept.files("lag", day))
    config = SparkConfig(master, out / "scratch", settings=settings_for(history_bytes))
    with spark_session(config) as session:
        session.range(1).count()
        up_s = time.perf_counter()
        spark_job.make(session, kept, unit, out / "report")
        made_s = time.perf_counter()
        rows = list(spark_job.rows(session, out / "report"))
        return {
            "groups": len(rows),
            # That nothing of what a report can find was left out.
            "with": {name: sum(row[name] is not None for row in rows) for name in FOUND},
            "start_s": round(up_s - began_s, 1),
            "compute_s": round(made_s - up_s, 1),
            "read_s": round(time.perf_counter() - made_s, 1),
            "stages": _stages(session),
        }


def pyarrow(history: Path, day: date, _out: Path) -> dict[str, object]:
    began_s = time.perf_counter()
    files = sorted((history / "v1" / "lag" / f"day={day}").glob("hour=*/*.parquet"))
    table = pa.concat_tables([pq.read_table(path, partitioning=None) for path in files]).combine_chunks()
    names = table["consumer_group"].dictionary_encode().combine_chunks()
    group = np.asarray(names.indices)
    at_ms = table["at"].cast(pa.int64()).to_numpy() // 1000
    held_ms = table["until"].cast(pa.int64()).to_numpy() // 1000 - at_ms
    read_s = time.perf_counter()
    of_row = pc.list_parent_indices(table["ends"]).to_numpy()
    lag = np.maximum(pc.list_flatten(table["ends"]).to_numpy() - pc.list_flatten(table["committed"]).to_numpy(), 0)
    by_queue = pa.table(
        {
            "group": group[of_row],
            "topic": table["topic"].dictionary_encode().combine_chunks().indices.take(pa.array(of_row)),
            "queue": pc.list_flatten(table["queues"]),
            "weighted": lag * held_ms[of_row],
            "held": held_ms[of_row],
            "lag": lag,
            "end": pc.list_flatten(table["ends"]),
        }
    ).group_by(["group", "topic", "queue"])
    queues = by_queue.aggregate([("weighted", "sum"), ("held", "sum"), ("lag", "max"), ("end", "min"), ("end", "max")])
    sums = np.bincount(of_row, weights=lag, minlength=len(table))
    hour = pa.array(at_ms // 3_600_000)
    spans = pa.table({"group": group, "hour": hour, "lag": sums, "held": held_ms, "weighted": sums * held_ms})
    hours = spans.group_by(["group", "hour"]).aggregate([("held", "sum"), ("lag", "max"), ("weighted", "sum")])
    in_order = np.lexsort((sums, group))
    weights = np.cumsum(held_ms[in_order])
    bounds = np.searchsorted(group[in_order], np.arange(len(names.dictionary) + 1))
    before = np.concatenate(([0], weights))[bounds]
    percentiles = [
        sums[in_order][np.searchsorted(weights, before[:-1] + share * np.diff(before))] for share in (0.5, 0.95, 0.99)
    ]
    done_s = time.perf_counter()
    return {
        "groups": len(names.dictionary),
        "queues": len(queues),
        "hours": len(hours),
        "percentiles": len(percentiles),
        "start_s": round(read_s - began_s, 1),
        "compute_s": round(done_s - read_s, 1),
    }


def _stages(session: Any) -> list[dict[str, object]]:
    """Returns the stages that took a second of processor time or more, as Spark measured them."""
    context = session.sparkContext
    quantiles = context._gateway.new_array(context._jvm.double, 0)
    empty = context._jvm.java.util.ArrayList()
    found = context._jsc.sc().statusStore().stageList(empty, False, False, quantiles, empty)
    every = [found.apply(number) for number in range(found.size())]
    return [
        {
            "tasks": one.numCompleteTasks(),
            "cpu_s": round(one.executorCpuTime() / 1e9, 1),
            "run_s": round(one.executorRunTime() / 1e3, 1),
            "in_mb": round(one.inputBytes() / 1e6, 1),
            "in_rows": one.inputRecords(),
            "shuffle_read_mb": round(one.shuffleReadBytes() / 1e6, 1),
            "shuffle_write_mb": round(one.shuffleWriteBytes() / 1e6, 1),
            "spilled_mb": round(one.diskBytesSpilled() / 1e6, 1),
            "gc_s": round(one.jvmGcTime() / 1e3, 1),
        }
        for one in sorted(every, key=lambda stage: stage.stageId())
        if one.executorRunTime() >= 1000
    ]


if __name__ == "__main__":
    kind, history, day, out = sys.argv[1:]
    figures = {"spark": spark, "pyarrow": pyarrow}[kind](Path(history), date.fromisoformat(day), Path(out))
    print(json.dumps(figures))
