"""Progress kept by the brokers (Java `RemoteBrokerOffsetStore`).

Persisting sends every known offset, also one that has not moved: a broker that was killed may have lost its last
seconds of offsets, and this is how they come back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from consumer.engine.brokers import Brokers
from consumer.engine.complaints import Complaints
from consumer.engine.offset_store import OffsetStore
from remoting.client.errors import ClientError
from remoting.wire.bodies.message_queue import MessageQueue

logger = logging.getLogger(__name__)


class RemoteOffsetStore(OffsetStore):
    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._known: dict[MessageQueue, int] = {}
        self._complaints = Complaints(logger)

    async def load(self, queue: MessageQueue) -> int | None:
        self.forget(queue)
        return await self._brokers.stored_offset(queue)

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
        await self._each(queues, self._brokers.commit_oneway)

    async def persist_surely(self, queues: Iterable[MessageQueue]) -> list[MessageQueue]:
        return await self._each(queues, self._brokers.commit)

    async def _each(
        self, queues: Iterable[MessageQueue], commit: Callable[[MessageQueue, int], Awaitable[None]]
    ) -> list[MessageQueue]:
        """The queues that failed; one queue's failure does not stop the others."""

        async def one(queue: MessageQueue, offset: int) -> MessageQueue | None:
            try:
                await commit(queue, offset)
            except ClientError as error:
                self._complaints.warn(queue.broker_name, f"progress cannot be committed: {error}")
                return queue
            self._complaints.settled(queue.broker_name)
            return None

        known = [(queue, self._known[queue]) for queue in queues if queue in self._known]
        return [queue for queue in await asyncio.gather(*(one(*item) for item in known)) if queue is not None]
