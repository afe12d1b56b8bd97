"""Members of the group `billing` on a `MemoryBroker`, whose topic `orders` has eight queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from consumer.engine.config import ConsumerConfig
from consumer.engine.failure_policy import FailurePolicy
from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.push_consumer import PushConsumer
from consumer.engine.rebalancer import QueuesChanged
from consumer.engine.start_position import start_rule
from tests.support.memory_broker import MemoryBroker

GROUP = "billing"


class Members:
    """Starts members and stops those that a test left running."""

    def __init__(self, broker: MemoryBroker) -> None:
        self.broker = broker
        self._running: list[PushConsumer] = []

    async def start(
        self,
        call: Callable[[Message], Any],
        *,
        tags: str = "*",
        sql: str | None = None,
        is_async: bool = True,
        decode: Callable[[bytes], Any] | None = None,
        queues_changed: QueuesChanged | None = None,
        failures: FailurePolicy | None = None,
        **config: Any,
    ) -> PushConsumer:
        settings = ConsumerConfig(self.broker.namesrv, GROUP, **{"start": start_rule("first"), **config})
        failures = failures or FailurePolicy()
        listener = Listener("orders", call, tags, is_async=is_async, decode=decode, sql=sql, failures=failures)
        member = PushConsumer(settings, {"orders": listener}, queues_changed=queues_changed)
        await member.start()
        self._running.append(member)
        return member

    async def stop(self, member: PushConsumer) -> None:
        self._running.remove(member)
        await member.stop()

    def lose(self, member: PushConsumer) -> None:
        """As if its machine were gone: its connection breaks, and the broker hears no more of it."""
        self.broker.cut_off(member.client_id)

    async def stop_all(self) -> None:
        for member in list(self._running):
            await self.stop(member)


def order_queues(member: PushConsumer) -> list[int]:
    return sorted(queue.queue_id for queue in member.queues if queue.topic == "orders")


def listener_into(bodies: list[bytes]) -> Callable[[Message], Any]:
    async def listen(message: Message) -> None:
        bodies.append(message.body)

    return listen
