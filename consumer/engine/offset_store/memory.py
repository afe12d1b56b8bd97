"""Progress in a dict: the twin of the broker's store, for tests and for those who need no memory after a restart."""

from __future__ import annotations

from collections.abc import Iterable

from consumer.engine.offset_store import OffsetStore
from remoting.wire.bodies.message_queue import MessageQueue


class MemoryOffsetStore(OffsetStore):
    """`stored` stands for what a broker would keep; hand the same dict to another member to share it."""

    def __init__(self, stored: dict[MessageQueue, int] | None = None) -> None:
        self.stored = {} if stored is None else stored
        self._known: dict[MessageQueue, int] = {}

    async def load(self, queue: MessageQueue) -> int | None:
        self.forget(queue)
        return self.stored.get(queue)

    def known(self, queue: MessageQueue) -> int | None:
        return self._known.get(queue)

    def advance(self, queue: MessageQueue, offset: int) -> None:
        if offset > self._known.get(queue, -1):
            self._known[queue] = offset

    def reset(self, queue: MessageQueue, offset: int) -> None:
        self._known[queue] = offset

    def forget(self, queue: MessageQueue) -> None:
        self._known.pop(queue, None)

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        self.stored.update({queue: self._known[queue] for queue in queues if queue in self._known})

    async def persist_surely(self, queues: Iterable[MessageQueue]) -> list[MessageQueue]:
        await self.persist(queues)
        return []
