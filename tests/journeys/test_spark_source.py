"""The data source `rocketmq` in Spark, against our broker and Apache's: what was sent is what is read."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from remoting.client.admin import Admin
from remoting.client.errors import BrokerRefused
from remoting.client.instance import ClientInstance
from remoting.client.producer import Producer
from remoting.wire.bodies.topics import TopicConfig
from tests.support.apache import ApacheRocketMQ
from tests.support.java_client import JavaClient, message_queue
from tests.support.our_broker import OurBroker
from tests.support.patience import answered
from tests.support.reading import wait_stored
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

pytestmark = [pytest.mark.spark, pytest.mark.journey]

Cluster: TypeAlias = OurBroker | ApacheRocketMQ
MESSAGES = 120
# What Apache's consumer adds to the properties of each message that it pulls, and the checksum that a store appends to
# them, which our client takes off.
NOT_OF_THE_SENDER = ("MIN_OFFSET", "MAX_OFFSET", "__CRC32#")
PULLED_AT_ONCE = 32
AS_SHOWN = (
    *("topic", "queue_id", "queue_offset", "tags", "keys", "properties", "msg_id", "offset_msg_id"),
    *("reconsume_times", "born_ms", "stored_ms", "size", "sha1"),
)
# What a body may be: no text, text in no encoding, long enough to travel compressed, and what does not compress.
BODIES = (b"\x00", b"\xff\xfe not utf-8", b"x" * 100_000, random.Random(7).randbytes(70_000), "日本 💥".encode())

# A stream's own Python process has 10 s to start, by no setting (Spark's PythonWorkerFactory.createSimpleWorker).
PYTHON_STARTED_TOO_LATE = "Python worker failed to connect back"
STARTS_OF_A_STREAM = 5


@pytest.fixture(scope="module", autouse=True)
def _registered(spark: SparkSession) -> None:
    from remoting.spark import RocketmqDataSource  # only where pyspark is installed

    spark.dataSource.register(RocketmqDataSource)


def on_cluster(cluster: Cluster, work: Callable[[ClientInstance], Any]) -> Any:
    async def working() -> Any:
        instance = ClientInstance(cluster.namesrv)
        instance.start()
        try:
            return await work(instance)
        finally:
            await instance.close()

    return asyncio.run(working())


def admin_of(instance: ClientInstance) -> Admin:
    return Admin(instance.connections, timeout_ms=60_000)


def create(cluster: Cluster, topic: str, queues: int) -> None:
    """Returns when the name server gives the topic's route with so many queues.

    Apache's may get an older registration last, so it is made again, with another `order`: a broker 5.4.0 registers
    nothing where all is as it was.
    """
    orders = itertools.cycle((False, True))

    async def creating(instance: ClientInstance) -> None:
        admin = admin_of(instance)

        async def is_routed() -> bool:
            config = TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues, order=next(orders))
            await admin.topics.create(cluster.broker, config)
            try:
                route = await admin.cluster.route(cluster.namesrv, topic)
            except BrokerRefused:
                return False
            return [(one.read_queue_nums, one.write_queue_nums) for one in route.queue_datas] == [(queues, queues)]

        await eventually(is_routed, what=f"the route of {topic} with {queues} queues")

    on_cluster(cluster, creating)


def send(cluster: Cluster, topic: str, numbers: range) -> dict[tuple[int, int], dict[str, Any]]:
    """Sends messages one after the other; returns them by queue and offset as Spark should show them."""

    async def sending(instance: ClientInstance) -> dict[tuple[int, int], dict[str, Any]]:
        producer = Producer(cluster.namesrv, "senders", instance=instance, timeout_ms=60_000)
        await producer.start()
        sent = {}
        for number in numbers:
            body = BODIES[number % len(BODIES)] + b"%d" % number
            tags, keys = "ab"[number % 2], [f"k{number}", "every"]
            properties = {"n": str(number), "é": "ü"}
            result = await answered(producer.send, topic, body, tags=tags, keys=keys, properties=properties)
            sent[result.queue.queue_id, result.queue_offset] = {
                "topic": topic,
                "broker": result.queue.broker_name,
                "body": body,
                "tags": tags,
                "keys": keys,
                "n": str(number),
                "é": "ü",
                "unique_key": result.message_id,
                "message_id": result.offset_message_id,
                "reconsume_times": 0,
                "body_error": None,
            }
        await producer.close()
        return sent

    return on_cluster(cluster, sending)  # type: ignore[no-any-return]


def groups(cluster: Cluster) -> set[str]:
    table = on_cluster(cluster, lambda instance: admin_of(instance).groups.table(cluster.broker))
    return set(table.subscription_group_table)


def read(spark: SparkSession, cluster: Cluster, topic: str, **options: str) -> DataFrame:
    return spark.read.format("rocketmq").options(namesrv=cluster.namesrv, topic=topic, **options).load()


def shown(frame: DataFrame) -> dict[tuple[int, int], dict[str, Any]]:
    found = {}
    for row in frame.collect():
        plain = row.asDict()
        properties = plain.pop("properties")
        place = plain.pop("queue"), plain.pop("offset")
        assert place not in found, "read twice"
        assert plain.pop("born_at").timestamp() <= time.time() + 60
        assert plain.pop("stored_at").timestamp() <= time.time() + 60
        assert plain.pop("born_host").startswith("127.0.0.1:")
        found[place] = {**plain, "body": bytes(plain["body"]), "n": properties["n"], "é": properties["é"]}
    return found


def test_what_was_sent_is_read_message_for_message(
    spark: SparkSession, every_cluster: Cluster, fresh: Callable[[str], str]
) -> None:
    cluster, topic = every_cluster, fresh("spark-orders")
    create(cluster, topic, 4)
    before = groups(cluster)
    older = send(cluster, topic, range(MESSAGES))
    # The brokers' clocks are this one.
    between_ms = time.time_ns() // 1_000_000 + 1
    while time.time_ns() // 1_000_000 <= between_ms:
        os.sched_yield()
    newer = send(cluster, topic, range(MESSAGES, 2 * MESSAGES))
    wait_stored(cluster.broker, topic, 2 * MESSAGES, 4)
    everything = older | newer

    assert shown(read(spark, cluster, topic)) == everything
    assert shown(read(spark, cluster, topic, startingTimestamp=str(between_ms))) == newer
    assert shown(read(spark, cluster, topic, endingTimestamp=str(between_ms))) == older
    in_parts = read(spark, cluster, topic, endingTimestamp="2100-01-01", maxRecordsPerPartition="25")
    assert shown(in_parts) == everything
    assert in_parts.rdd.getNumPartitions() >= 2 * MESSAGES // 25
    tagged = read(spark, cluster, topic, tags="a").select("queue", "offset").collect()
    assert {tuple(row) for row in tagged} == {place for place, one in everything.items() if one["tags"] == "a"}
    chosen = read(spark, cluster, topic, sql="n >= 200 AND TAGS = 'b'").select("queue", "offset").collect()
    numbers = {place: int(one["n"]) for place, one in everything.items()}
    assert {tuple(row) for row in chosen} == {place for place, n in numbers.items() if n >= 200 and n % 2}
    assert groups(cluster) == before


def pulled(java: JavaClient, puller: str, topic: str, queue: int) -> list[dict[str, Any]]:
    """Returns the messages of a queue as Apache's own consumer gets them."""
    found: list[dict[str, Any]] = []
    offset, end = 0, 1
    while offset < end:
        answer = java.invoke(puller, "pull", message_queue(topic, queue), "*", offset, PULLED_AT_ONCE)
        found += answer["messages"]
        offset, end = answer["next_offset"], answer["max_offset"]
    return found


def as_apache_shows(row: Any) -> dict[str, Any]:
    """Returns a row as the driver shows a message."""
    return {
        "topic": row.topic,
        "queue_id": row.queue,
        "queue_offset": row.offset,
        "tags": row.tags,
        "keys": row["keys"],
        "properties": row.properties,
        "msg_id": row.unique_key,
        "offset_msg_id": row.message_id,
        "reconsume_times": row.reconsume_times,
        "born_ms": round(row.born_at.timestamp() * 1000),
        "stored_ms": round(row.stored_at.timestamp() * 1000),
        "size": len(row.body),
        "sha1": hashlib.sha1(row.body, usedforsecurity=False).hexdigest(),
    }


@pytest.mark.java
def test_what_apaches_client_sends_is_read_as_its_own_consumer_reads_it(
    spark: SparkSession, cluster: Cluster, java_process_5_4_0: JavaClient, fresh: Callable[[str], str]
) -> None:
    java, topic, producer = java_process_5_4_0.on(cluster.namesrv), fresh("spark-java"), fresh("spark-producer")
    create(cluster, topic, 2)
    java.producer(producer)
    told = {"tag": "paid", "keys": "k", "properties": {"n": "7", "é": "ü", "spaced": " a b "}}
    sent = java.send(producer, topic, count=60, **told)
    sent += java.send(producer, topic, count=6, first=60, mode="async")
    # Long enough for the client to compress it.
    sent += java.send(producer, topic, count=4, first=66, size=50_000, keys="one two ")
    java.send(producer, topic, count=10, first=70, mode="batch", tag="batched")
    wait_stored(cluster.broker, topic, 80, 2)
    puller = fresh("spark-puller")
    java.pull_consumer(puller, fresh("spark-pullers"))

    seen = [message for queue in range(2) for message in pulled(java, puller, topic, queue)]
    rows = read(spark, cluster, topic).collect()
    assert len(seen) == len(rows) == 80
    found = {(row.queue, row.offset): as_apache_shows(row) for row in rows}
    expected = {(one["queue_id"], one["queue_offset"]): {name: one.get(name) for name in AS_SHOWN} for one in seen}
    for one in expected.values():
        one["keys"] = (one["keys"] or "").split()
        kept = one["properties"].keys() - NOT_OF_THE_SENDER
        one["properties"] = {name: one["properties"][name] for name in kept}
    assert found == expected
    assert {one["msg_id"] for one in sent} <= {one["msg_id"] for one in found.values()}
    assert {row.body for row in rows if row.tags == "batched"} == {b"body-%d" % number for number in range(70, 80)}
    java.stop(producer)
    java.stop(puller)


def test_a_stream_goes_on_from_its_checkpoint_and_finds_new_queues(
    spark: SparkSession, cluster: Cluster, fresh: Callable[[str], str], tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException  # only where pyspark is installed

    topic, out, checkpoint = fresh("spark-stream"), tmp_path / "out", tmp_path / "checkpoint"
    create(cluster, topic, 2)

    def keep(batch: DataFrame, number: int) -> None:
        batch.select("queue", "offset").write.mode("overwrite").parquet(f"{out}/batch={number}")

    def start() -> StreamingQuery:
        messages = (
            spark.readStream.format("rocketmq")
            .options(namesrv=cluster.namesrv, topic=topic, startingOffsets="earliest", maxOffsetsPerTrigger="40")
            .load()
        )
        return (
            messages.writeStream.foreachBatch(keep)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )

    def run() -> None:
        for starts_left in reversed(range(STARTS_OF_A_STREAM)):
            query = start()
            try:
                assert query.awaitTermination(300)
            except StreamingQueryException as error:
                if not starts_left or PYTHON_STARTED_TOO_LATE not in str(error):
                    raise
            else:
                assert query.exception() is None
                return

    def kept() -> list[tuple[int, int]]:
        return sorted(tuple(row) for row in spark.read.parquet(str(out)).select("queue", "offset").collect())

    sent = send(cluster, topic, range(MESSAGES))
    wait_stored(cluster.broker, topic, MESSAGES, 2)
    run()
    assert kept() == sorted(sent)

    # Killed before the last batch was noted as done: that batch is done again, over the same messages.
    done = sorted((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    done[-1].unlink()
    (done[-1].parent / f".{done[-1].name}.crc").unlink(missing_ok=True)
    create(cluster, topic, 4)
    sent |= send(cluster, topic, range(MESSAGES, 2 * MESSAGES))
    wait_stored(cluster.broker, topic, 2 * MESSAGES, 4)
    run()
    assert kept() == sorted(sent)
    assert len({queue for queue, _ in sent}) == 4
