"""An offset store in a dict."""

from __future__ import annotations

from collections.abc import Iterable

from consumer.engine.offset_store import OffsetStore
from remoting.wire.bodies.message_queue import MessageQueue


class MemoryOffsetStore(OffsetStore):
    """`stored` stands for what a broker keeps; members that share the dict share their progress."""

    def __init__(self, stored: dict[MessageQueue, int] | None = None) -> None:
        super().__init__()
        self.stored = {} if stored is None else stored

    async def load(self, queue: MessageQueue) -> int | None:
        self.forget(queue)
        return self.stored.get(queue)

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        self.stored.update(self._held(queues))

    async def persist_and_confirm(self, queues: Iterable[MessageQueue]) -> list[MessageQueue]:
        await self.persist(queues)
        return []
