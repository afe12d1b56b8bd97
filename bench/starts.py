"""Measures how soon all queues are consumed when 20 members of a group start at once: Java's, ours, and both together.

The clock starts when the last member's `start()` has returned, and ends for a queue when a message sent after that has
been consumed. Java's members share one JVM and start in threads of it; ours share this process. On Apache RocketMQ all
members are ours: its own stand still there for up to 30 s when their heartbeats collide.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from bench.clusters import Cluster
from consumer.engine.config import ConsumerConfig
from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.push_consumer import PushConsumer
from consumer.engine.start_position import start_rule
from remoting.client.admin import Admin
from remoting.client.instance import ClientInstance
from remoting.client.producer import Producer
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.topics import TopicConfig
from tests.support.apache import BROKER_NAME, ApacheRocketMQ
from tests.support.java import require_apache, require_driver
from tests.support.java_client import JavaClient
from tests.support.our_broker import OurBroker

QUEUES = 40
ROUNDS = 3
GIVEN_UP_AFTER_S = 45.0
JAVA_STARTS_WITHIN_S = 60.0
LOOK_INTERVAL_S = 0.2
# Names of the cluster, Java's members, ours.
CASES = (("ours", 20, 0), ("ours", 10, 10), ("ours", 0, 20), ("apache", 0, 20))


class Deploy:
    """A topic and a group of one round."""

    def __init__(self, cluster: Cluster, java: JavaClient | None, name: str) -> None:
        self._cluster = cluster
        self._java = java
        self._topic, self._group = f"starts-{name}", f"group-{name}"
        self._client = ClientInstance(cluster.namesrv)
        self._admin = Admin(self._client.connections)
        self._producer = Producer(cluster.namesrv, "starts", instance=self._client)
        self._members: list[PushConsumer] = []
        self._consumed: set[MessageQueue] = set()

    async def run(self, java_count: int, our_count: int) -> float:
        """Returns after how many seconds the last queue was consumed."""
        self._client.start()
        await self._producer.start()
        config = TopicConfig(topic_name=self._topic, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        await self._admin.topics.create(self._cluster.broker, config)
        await asyncio.gather(asyncio.to_thread(self._start_java, java_count), self._start_ours(our_count))
        began_s = time.monotonic()
        while len(self._consumed) < QUEUES and time.monotonic() - began_s < GIVEN_UP_AFTER_S:
            await self._look()
        took_s = time.monotonic() - began_s
        await asyncio.gather(*(member.stop() for member in self._members))
        await self._producer.close()
        await self._client.close()
        return took_s

    def _start_java(self, count: int) -> None:
        if self._java is None:
            return
        numbers = [
            self._java.post(
                "consumer",
                name=f"{self._group}-{number}",
                group=self._group,
                topic=self._topic,
                namesrv=self._cluster.namesrv,
            )
            for number in range(count)
        ]
        for number in numbers:
            self._java.answer(number, JAVA_STARTS_WITHIN_S)

    async def _start_ours(self, count: int) -> None:
        config = ConsumerConfig(self._cluster.namesrv, self._group, start=start_rule("first"))
        for _ in range(count):
            member = PushConsumer(config, {self._topic: Listener(self._topic, self._listen, is_async=True)})
            await member.start()
            self._members.append(member)

    async def _listen(self, message: Message) -> None:
        if message.queue is not None:
            self._consumed.add(message.queue)

    async def _look(self) -> None:
        """Sends a message into each queue that was not consumed yet, and sees which were committed since."""
        waiting = [
            queue
            for queue_id in range(QUEUES)
            if (queue := MessageQueue(self._topic, BROKER_NAME, queue_id)) not in self._consumed
        ]
        for queue in waiting:
            await self._producer.send(self._topic, b"x", queue=queue)
        await asyncio.sleep(LOOK_INTERVAL_S)
        for queue in waiting:  # Java's members commit with each pull
            committed = await self._admin.offsets.committed(
                self._cluster.broker, self._group, queue.topic, queue.queue_id
            )
            if committed:
                self._consumed.add(queue)


def main() -> None:
    require_apache()
    require_driver("5.4.0")
    with tempfile.TemporaryDirectory() as scratch:
        for kind, java_count, our_count in CASES:
            folder = Path(scratch) / f"{kind}-{java_count}-{our_count}"
            folder.mkdir()
            cluster = OurBroker(folder / "store") if kind == "ours" else ApacheRocketMQ(folder)
            with cluster:
                took_s = [_round(cluster, folder, number, java_count, our_count) for number in range(ROUNDS)]
            figures = ", ".join(f"{one:.1f}" for one in took_s)
            print(f"{kind:6}  {java_count:2} of Java, {our_count:2} of ours: all {QUEUES} queues after {figures} s")


def _round(cluster: Cluster, folder: Path, number: int, java_count: int, our_count: int) -> float:
    if not java_count:
        return asyncio.run(Deploy(cluster, None, f"{number}").run(java_count, our_count))
    with JavaClient("5.4.0", folder / f"java-{number}", cluster.namesrv) as java:
        return asyncio.run(Deploy(cluster, java, f"{number}").run(java_count, our_count))
