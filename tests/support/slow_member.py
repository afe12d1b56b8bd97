"""A member in Python whose listener takes as long as the test says, and a producer for its topic."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from consumer.engine.config import ConsumerConfig
from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.push_consumer import PushConsumer
from consumer.engine.start_position import start_rule
from remoting.client.producer import Producer
from tests.support.patience import answered

SLOW = b"slow"
# One for each queue that a topic has, twice on the clusters with four.
WARM_UP = 8


@dataclass(slots=True)
class SlowMember:
    """`given` counts the messages that its listener got; of those that say SLOW it lets go once `goes_on` is set."""

    topic: str
    producer: Producer
    client_id: str = ""
    given: int = 0
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def send_slow(self, count: int = 1) -> None:
        for _ in range(count):
            await answered(self.producer.send, self.topic, SLOW)

    async def listen(self, message: Message[Any]) -> None:
        self.given += 1
        if message.body == SLOW:
            await self.goes_on.wait()


@asynccontextmanager
async def slow_member(namesrv: str, topic: str, group: str, sender: str, **settings: Any) -> AsyncIterator[SlowMember]:
    """Starts one on a topic with WARM_UP messages. `settings` are those of its ConsumerConfig."""
    producer = Producer(namesrv, sender, timeout_ms=60_000)
    await producer.start()
    found = SlowMember(topic, producer)
    config = ConsumerConfig(namesrv, group, start=start_rule("first"), **settings)
    consumer = PushConsumer(config, {topic: Listener(topic, found.listen, "*", is_async=True)})
    try:
        for _ in range(WARM_UP):
            await answered(producer.send, topic, b"warm-up")
        await consumer.start()
        found.client_id = consumer.client_id
        yield found
    finally:
        found.goes_on.set()
        await consumer.stop()
        await producer.close()
