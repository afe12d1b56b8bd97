"""librocketmq, the C++ client behind most language bindings, against our broker and Apache's."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.children import Child
from tests.support.java_client import JavaClient
from tests.support.tools import require
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.native]

Fresh = Callable[[str], str]
ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests/support/librocketmq_process.py"
# It asks for new routes, and so for its retry topic, every 20 to 30 s.
ENDED_WITHIN_S = 60.0


@pytest.fixture
def native(cluster: Any, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """Runs librocketmq_process.py to its end; what it printed."""
    require(importlib.util.find_spec("rocketmq"), "the wheel rocketmq is not installed")

    def run(action: str, group: str, topic: str, *numbers: int) -> list[dict[str, Any]]:
        words = [action, cluster.namesrv, group, topic, *map(str, numbers)]
        child = Child(
            [sys.executable, str(SCRIPT), *words],
            tmp_path / f"{action}-{group}.log",
            env={"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        )
        try:
            wait_until(lambda: not child.is_running, ENDED_WITHIN_S, f"the end of {words}")
        finally:
            child.kill()
        assert child.process.returncode == 0, child.output()
        return [json.loads(line) for line in child.output().splitlines() if line.startswith("{")]

    return run


def test_librocketmq_sends_and_a_java_consumer_reads(
    native: Callable[..., list[dict[str, Any]]], java_process_5_4_0: JavaClient, cluster: Any, fresh: Fresh
) -> None:
    topic, name = fresh("native"), fresh("consumer")
    results = native("send", fresh("group"), topic, 8, 5000)
    assert [each["status"] for each in results] == ["OK"] * 8
    java = java_process_5_4_0.on(cluster.namesrv)
    java.consumer(name, fresh("group"), topic)
    got = java.wait_consumed(8, name)
    java.stop(name)
    assert {message["size"] for message in got} == {5000}
    assert {message["keys"] for message in got} == {f"key-{number}" for number in range(8)}
    assert {(message["tags"], message["properties"]["origin"]) for message in got} == {("native", "librocketmq")}
    assert {message["msg_id"] for message in got} == {each["msg_id"] for each in results}


def test_librocketmq_consumes_what_java_sent_and_a_refused_message_returns(
    native: Callable[..., list[dict[str, Any]]], java_process_5_4_0: JavaClient, cluster: Any, fresh: Fresh
) -> None:
    topic, group, sender = fresh("native"), fresh("group"), fresh("producer")
    java = java_process_5_4_0.on(cluster.namesrv)
    java.producer(sender)
    java.send(sender, topic, mode="batch", count=4, body="batched-", tag="tag", keys="key")
    java.send(sender, topic, count=4, size=6000, body="compressed-")
    java.stop(sender)
    got = native("consume", group, topic, 8)
    bodies = [message["body"].rstrip(".") for message in got]
    assert sorted(set(bodies)) == sorted([*(f"batched-{n}" for n in range(4)), *(f"compressed-{n}" for n in range(4))])
    # The library may return others too, when it is slow to take them.
    returned = next(message for message, body in list(zip(got, bodies, strict=True))[1:] if body == bodies[0])
    assert (got[0]["reconsume_times"], returned["reconsume_times"]) == (0, 1)
    assert returned["at_ms"] - got[0]["at_ms"] >= 10_000
