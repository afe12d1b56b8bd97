"""Rows of the history of samples, made by hand or at random, for the steps of reports."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mqadmin.reports.spark_job import OBJECTIVE_DDL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

START_S = 1_795_305_600  # 2026-11-22T00:00Z
OBJECTIVE_MS = 60_000


def row(at: int, until: int, *, group: str = "g", topic: str = "orders", **values: Any) -> dict[str, Any]:
    """A row of the history with one queue, `at` and `until` in seconds after START_S; None: not known."""
    end, committed, since = values.get("end", 0), values.get("committed", 0), values.get("since")
    return {
        "cluster": "c",
        "consumer_group": group,
        "topic": topic,
        "at": datetime.fromtimestamp(START_S + at, UTC),
        "until": datetime.fromtimestamp(START_S + until, UTC),
        "verdict": "ok",
        "members": values.get("members", 1),
        "brokers": ["a"],
        "queues": [values.get("queue", 0)],
        "committed": [committed],
        "ends": [end],
        "waiting_since_ms": [0 if since is None else (START_S + since) * 1000],
        "doubt_ms": [0],
    }


def queues(at: int, until: int, *offsets: tuple[str, int | None, int | None], topic: str = "orders") -> dict[str, Any]:
    """A row with one queue of each broker: its name, end and committed offset."""
    names, ends, committed = ([one[place] for one in offsets] for place in range(3))
    nothing = [0] * len(offsets)
    return row(at, until, topic=topic) | {
        "brokers": names,
        "queues": nothing,
        "ends": ends,
        "committed": committed,
        "waiting_since_ms": nothing,
        "doubt_ms": nothing,
    }


def random_moves(chance: random.Random) -> list[dict[str, Any]]:
    rows = []
    for group in ("a", "b"):
        for topic in ("orders", "refunds", f"%RETRY%{group}", f"%DLQ%{group}"):
            at, is_dead = chance.randrange(600), topic.startswith("%DLQ%")
            ends, committed = {"a": chance.randrange(3), "b": 5_000}, {"a": 0, "b": 4_000}
            while at < 4 * 3600:
                # As in the history, no row goes on into the next hour.
                until = min(at + chance.randrange(1, 900), (at // 3600 + 1) * 3600)
                found = []
                for broker in ends:
                    end = ends[broker]
                    ends[broker] = end = chance.randrange(3) if chance.random() < 0.05 else end + chance.randrange(50)
                    is_reset = chance.random() < 0.1
                    committed[broker] = chance.randrange(end + 1) if is_reset else min(end, committed[broker] + 20)
                    known = None if is_dead or chance.random() < 0.08 else committed[broker]
                    found.append((broker, None if chance.random() < 0.05 else end, known))
                there = [one for one in found if one[0] == "a" or chance.random() < 0.8]
                chance.shuffle(there)
                rows.append(queues(at, until, *there, topic=topic) | {"consumer_group": group})
                at = until if chance.random() < 0.8 else until + chance.randrange(1, 4000)
    return rows


def found(frame: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(one[name] for name in names) for one in frame.collect()), key=repr)


def seconds(ms: int) -> float:
    return ms / 1000 - START_S


def by_default(topics: DataFrame, *objectives: tuple[str, int, int, int, int | None]) -> DataFrame:
    """Judges by a minute, or by objectives: group, from, until (seconds after START_S), seconds, messages."""
    from mqadmin.reports import steps  # needs PySpark

    held = [
        (group, (START_S + at) * 1000, (START_S + until) * 1000, s * 1000, lag)
        for group, at, until, s, lag in objectives
    ]
    frame = topics.sparkSession.createDataFrame(held, OBJECTIVE_DDL)
    return steps.judged(topics, frame, OBJECTIVE_MS)
