"""The example of a Spark job, run as its users run it: as a program, on a broker and on a history."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mqadmin.reports.history import LAG, History, hour_of
from remoting.client.producer import Producer
from tests.support.java import java_executable
from tests.support.our_broker import OurBroker
from tests.support.spark import LIGHT_JVM
from tests.support.tools import require

pytestmark = [pytest.mark.spark, pytest.mark.journey]
ROOT = Path(__file__).parents[2]
RUN_WITHIN_S = 500


def write_hour(history: History, hour: datetime) -> None:
    """Of one group and its topic 10 messages wait in one queue, 26 in another; another topic has more.

    So has a sample of which one offset is not known, and a group of this name in another cluster has less.
    """
    row = {"cluster": "shop", "consumer_group": "billing", "at": hour, "until": hour + timedelta(minutes=30)}
    row |= {"verdict": "ok", "members": 1, "brokers": ["a", "a"], "queues": [0, 1], "doubt_ms": [0, 0]}
    orders = {"topic": "orders", "committed": [0, 4], "ends": [10, 30], "waiting_since_ms": [1, 1]}
    others = {"topic": "others", "committed": [0, 0], "ends": [99, 99], "waiting_since_ms": [1, 1]}
    unknown = {**orders, "ends": [900, 900], "committed": [0, None]}
    with history.writing("lag", "shop", hour, is_complete=True) as writer:
        writer.write_table(pa.Table.from_pylist([{**row, **orders}, {**row, **others}, {**row, **unknown}], schema=LAG))
    fewer = {**orders, "cluster": "test", "ends": [5, 0], "committed": [0, None]}
    with history.writing("lag", "test", hour, is_complete=True) as writer:
        writer.write_table(pa.Table.from_pylist([{**row, **fewer}], schema=LAG))


def test_messages_and_lag_are_put_beside_each_other_by_hour(tmp_path: Path) -> None:
    require(importlib.util.find_spec("pyspark"), "no pyspark: install requirements/reports.txt")
    require(java_executable(), "no java on PATH (17 or newer is needed)")

    async def send(namesrv: str) -> None:
        producer = Producer(namesrv, "shop", timeout_ms=60_000)
        await producer.start()
        for number in range(30):
            await producer.send("orders", b"%03d" % number, tags="paid" if number % 3 else "refunded")
        await producer.close()

    with OurBroker(tmp_path / "store") as broker:
        asyncio.run(send(broker.namesrv))
        hour = hour_of(datetime.now(UTC))
        history = History(tmp_path / "history")
        for at in (hour, hour - timedelta(hours=1)):
            write_hour(history, at)
        command = [sys.executable, "examples/orders_by_hour.py", "--namesrv", broker.namesrv, "--topic", "orders"]
        folders = ["--history", str(history.root / "lag"), "--out", str(tmp_path / "out")]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
        environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_MASTER": "local[2]", **LIGHT_JVM}
        done = subprocess.run(
            [*command, *folders], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=RUN_WITHIN_S
        )
    assert done.returncode == 0, done.stderr
    found = pq.read_table(tmp_path / "out").to_pylist()
    of_shop = [row for row in found if row["cluster"] == "shop"]
    # An hour may have begun while they were sent. Spark's Parquet has UTC without saying so.
    assert {row["hour"].replace(tzinfo=UTC) for row in of_shop} <= {hour, hour - timedelta(hours=1)}
    assert len({(row["hour"], row["tag"]) for row in of_shop}) == len(of_shop)
    for tag, sent in (("paid", (20, 60)), ("refunded", (10, 30))):
        rows = [row for row in of_shop if row["tag"] == tag]
        assert (sum(row["messages"] for row in rows), sum(row["bytes"] for row in rows)) == sent
    assert {row["consumer_group"] for row in of_shop} == {"billing"}
    assert {(row["cluster"], row["lag_max"]) for row in found} == {("shop", 36), ("test", 5)}
    assert "refunded" in done.stdout
