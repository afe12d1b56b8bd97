"""A topic and a group of one test on one cluster, with members of our own consumer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from consumer.engine.config import ConsumerConfig
from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.push_consumer import PushConsumer
from consumer.engine.start_position import start_rule
from remoting.client.admin import Admin
from remoting.client.instance import ClientInstance
from remoting.client.producer import Producer
from tests.support.apache import ApacheRocketMQ
from tests.support.our_broker import OurBroker
from tests.support.patience import answered

# What a topic gets that is made by its first message.
QUEUE_COUNT = 4
ALL_QUEUES = set(range(QUEUE_COUNT))
WARM_UP = "warm-up"


class Shop:
    """A topic and a group of one test on one cluster, with everything that a test does to them."""

    def __init__(self, cluster: OurBroker | ApacheRocketMQ, topic: str, group: str) -> None:
        self.cluster = cluster
        self.topic = topic
        self.group = group
        self.client = ClientInstance(cluster.namesrv)
        self.admin = Admin(self.client.connections, timeout_ms=60_000)
        self.producer = Producer(cluster.namesrv, "shop", instance=self.client, timeout_ms=60_000)
        self._members: list[PushConsumer] = []

    async def open(self) -> None:
        """The first message makes the topic, with as many queues as a producer asks for."""
        self.client.start()
        await self.producer.start()
        await self.send(WARM_UP)

    async def close(self) -> None:
        for member in list(self._members):
            await self.leave(member)
        await self.producer.close()
        await self.client.close()

    async def join(
        self,
        call: Callable[..., Any],
        *,
        tags: str = "*",
        sql: str | None = None,
        is_async: bool = True,
        batch_size: int | None = None,
        **config: Any,
    ) -> PushConsumer:
        settings = ConsumerConfig(self.cluster.namesrv, self.group, **{"start": start_rule("first"), **config})
        listener = Listener(self.topic, call, tags, is_async=is_async, sql=sql, batch_size=batch_size)
        member = PushConsumer(settings, {self.topic: listener})
        await member.start()
        self._members.append(member)
        return member

    async def leave(self, member: PushConsumer) -> None:
        self._members.remove(member)
        await member.stop()

    async def send(self, *bodies: str, tags: str | None = None, properties: Mapping[str, str] | None = None) -> None:
        for body in bodies:
            await answered(self.producer.send, self.topic, body.encode(), tags=tags, properties=properties or {})

    def queues(self, member: PushConsumer) -> set[int]:
        return {queue.queue_id for queue in member.queues if queue.topic == self.topic}

    async def committed(self) -> int:
        """Sum over the topic's queues, the first message left out."""
        total = -1
        for queue_id in range(QUEUE_COUNT):
            total += await self.admin.offsets.committed(self.cluster.broker, self.group, self.topic, queue_id) or 0
        return total


def into(bodies: list[str]) -> Callable[[Message], Any]:
    async def listen(message: Message) -> None:
        if message.text != WARM_UP:
            bodies.append(message.text)

    return listen
