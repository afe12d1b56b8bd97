"""A broker in memory on an event loop of its own, for tests that block."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from tests.support.memory_broker import MemoryBroker
from tests.support.waiting import WITHIN_S


class BrokerThread:
    """A MemoryBroker on a loop of its own, for blocking tests."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.broker = MemoryBroker()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(WITHIN_S)

    def call(self, function: Any, *arguments: Any) -> Any:
        async def calling() -> Any:
            return function(*arguments)

        return self.run(calling())

    def __enter__(self) -> BrokerThread:
        self._thread.start()
        self.run(self.broker.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self.broker.__aexit__())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(WITHIN_S)
        self.loop.close()

    def messages(self, topic: str) -> list[Any]:
        return [message for queue, stored in self.broker.queues.items() if queue.topic == topic for message in stored]
