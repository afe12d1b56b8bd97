"""Offsets stored by the brokers (Java `RemoteBrokerOffsetStore`).

Persisting sends every offset in memory, also one that has not moved: a broker that was killed may have lost the last
seconds of commits, and gets them back this way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from consumer.engine.brokers import Brokers
from consumer.engine.offset_store import OffsetStore
from remoting.client.errors import ClientError
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.message_queue import MessageQueue

logger = logging.getLogger(__name__)

# Kind of the complaint about a broker that takes no offsets.
NOT_COMMITTED = "not committed"


class RemoteOffsetStore(OffsetStore):
    def __init__(self, brokers: Brokers) -> None:
        super().__init__()
        self._brokers = brokers
        self._complaints = ComplaintLog(logger)

    async def load(self, queue: MessageQueue) -> int | None:
        self.forget(queue)
        return await self._brokers.committed_offset(queue)

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        await self._commit_each(queues, self._brokers.commit_oneway)

    async def persist_and_confirm(self, queues: Iterable[MessageQueue]) -> list[MessageQueue]:
        """Commits one queue of each topic and broker first, then the others together.

        Apache's broker (`ConsumerOffsetManager.commitOffset`) makes the table of a topic and group at its first commit,
        and of two first commits at the same time it loses one.
        """
        queues = list(queues)
        first = {(queue.broker_name, queue.topic): queue for queue in self._held(queues)}.values()
        failed = await self._commit_each(first, self._brokers.commit)
        others = [queue for queue in queues if queue not in first]
        return failed + await self._commit_each(others, self._brokers.commit)

    async def _commit_each(
        self, queues: Iterable[MessageQueue], commit: Callable[[MessageQueue, int], Awaitable[None]]
    ) -> list[MessageQueue]:
        """Returns the queues that failed; the failure of one does not stop the others."""

        async def one(queue: MessageQueue, offset: int) -> MessageQueue | None:
            try:
                await commit(queue, offset)
            except ClientError as error:
                self._complaints.warn(queue.broker_name, NOT_COMMITTED, "offsets cannot be committed: %s", error)
                return queue
            self._complaints.resolved(queue.broker_name, NOT_COMMITTED)
            return None

        results = await asyncio.gather(*(one(queue, offset) for queue, offset in self._held(queues).items()))
        return [queue for queue in results if queue is not None]
