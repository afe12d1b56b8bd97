"""librocketmq, the C++ client behind most language bindings, against our broker and Apache's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from remoting.wire.batch import decode_batch
from tests.support.java_client import JavaClient
from tests.support.librocketmq import NativeProcess, require_librocketmq
from tests.support.reading import stored_count, stored_messages
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.native]

Fresh = Callable[[str], str]
Native = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def native(cluster: Any, tmp_path: Path) -> Iterator[Native]:
    """Runs librocketmq to its end; what it printed."""
    require_librocketmq()
    started: list[NativeProcess] = []

    def run(action: str, *words: str | int) -> list[dict[str, Any]]:
        started.append(NativeProcess(tmp_path, action, cluster.namesrv, *words))
        return started[-1].ended()

    yield run
    for process in started:
        process.kill()


def test_librocketmq_sends_in_every_way_and_a_java_consumer_reads(
    native: Native, java_process_5_4_0: JavaClient, cluster: Any, fresh: Fresh
) -> None:
    topic, name = fresh("native"), fresh("consumer")
    results = native("send", fresh("group"), topic, 8, 5000)
    assert [each["kind"] for each in results] == ["sync"] * 8 + ["async"] * 8 + ["batch"]
    assert {each["status"] for each in results} == {"OK"}
    java = java_process_5_4_0.on(cluster.namesrv)
    java.consumer(name, fresh("group"), topic)
    received = java.wait_consumed(25, name)
    java.stop(name)
    singles = [message for message in received if message.get("tags")]
    assert sorted(message["keys"] for message in singles) == sorted(
        f"{kind}-key-{number}" for kind in ("sync", "oneway", "async") for number in range(8)
    )
    for message in singles:
        assert message["keys"].startswith(f"{message['tags']}-key-")
        assert (message["size"], message["properties"]["origin"]) == (5000, "librocketmq")
    answered = {each["msg_id"] for each in results if each["kind"] != "batch"}
    assert answered == {message["msg_id"] for message in singles if message["tags"] != "oneway"}


def test_a_batch_of_librocketmq_is_stored_as_one_message(native: Native, cluster: Any, fresh: Fresh) -> None:
    """It says "1" where a batch must say "true"; RocketMQ takes that for no batch."""
    topic = fresh("native-batch")
    native("send", fresh("group"), topic, 4, 0)
    wait_until(lambda: stored_count(cluster.broker, topic, 4) >= 3 * 4 + 1, what="all messages in their queues")
    stored = [message for queue_id in range(4) for message in stored_messages(cluster.broker, topic, queue_id)]
    (batch,) = [message for message in stored if not message.tags]
    assert [entry.body for entry in decode_batch(batch.body)] == [b"batch-0", b"batch-1", b"batch-2", b"batch-3"]
    assert len(stored) == 3 * 4 + 1


def test_librocketmq_consumes_what_java_sent_and_a_refused_message_returns(
    native: Native, java_process_5_4_0: JavaClient, cluster: Any, fresh: Fresh
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
