"""A group of our own consumer whose listener fails until it is healed, for tests that block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from consumer.engine.message import Message
from consumer.engine.push_consumer import PushConsumer
from tests.journeys.shop import WARM_UP, Shop
from tests.support.apache import ApacheRocketMQ
from tests.support.our_broker import OurBroker
from tests.support.waiting import wait_until

# Members join, and a first message makes the topic, while other tests keep the machine busy.
WITHIN_S = 120.0

V = TypeVar("V")


class PaymentTimeout(Exception):
    """What the listener fails of."""


class FailingGroup:
    """Joins on entering, leaves on leaving. What it fails on is dead after `retries`, of which it wants none by itself.

    With `is_orderly` its members consume in order. `consumed` are the bodies that it took, once `heal` was called.
    """

    def __init__(
        self,
        cluster: OurBroker | ApacheRocketMQ,
        topic: str,
        group: str,
        *,
        retries: int = 0,
        is_orderly: bool = False,
    ) -> None:
        self.shop = Shop(cluster, topic, group)
        self.consumed: list[str] = []
        self.failed: list[str] = []
        self._config = {"max_reconsume_times": retries, "is_orderly": is_orderly}
        self._is_healed = False
        self._member: PushConsumer | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> FailingGroup:
        self._thread.start()
        self._run(self.shop.open())
        self.join()
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self.shop.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WITHIN_S)
        self._loop.close()

    def join(self) -> None:
        self._member = self._run(self.shop.join(self._listen, **self._config))

    def leave(self) -> None:
        assert self._member is not None
        self._run(self.shop.leave(self._member))

    def heal(self) -> None:
        self._is_healed = True

    def sicken(self) -> None:
        self._is_healed = False

    def send_and_fail(self, *bodies: str, properties: Mapping[str, str] | None = None) -> None:
        """Returns when the listener has failed on all of them."""
        self._run(self.shop.send(*bodies, tags="paid", properties=properties))
        wait_until(lambda: set(bodies) <= set(self.failed), WITHIN_S, "the failures of the listener")

    def wait_consumed(self, *bodies: str) -> None:
        wait_until(lambda: set(bodies) <= set(self.consumed), WITHIN_S, "what the healed group consumes")

    def wait_consumed_times(self, times: int, *bodies: str) -> None:
        """Returns when it has consumed each of them so often."""
        wait_until(
            lambda: all(self.consumed.count(body) >= times for body in bodies), WITHIN_S, "what it consumes again"
        )

    async def _listen(self, message: Message) -> None:
        if message.text == WARM_UP:
            return
        if not self._is_healed:
            self.failed.append(message.text)
            raise PaymentTimeout("the gateway did not answer within 20 s")
        self.consumed.append(message.text)

    def _run(self, coroutine: Coroutine[Any, Any, V]) -> V:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(WITHIN_S)
