"""Offsets stored by the brokers (Java `RemoteBrokerOffsetStore`).

Persisting sends every offset in memory, also one that has not moved since: a broker that was killed may have lost the
last seconds of commits, and gets them back this way. One that is still as it was loaded is not sent: without locks,
another member may have gone on meanwhile, and a broker takes a smaller offset, too. (0 is sent: brokers answer it where
nothing is committed.)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from consumer.engine.brokers import Brokers
from consumer.engine.offset_store import OffsetStore
from remoting.client.commit_rounds import commit_rounds
from remoting.client.errors import ClientError
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.message_queue import MessageQueue

logger = logging.getLogger(__name__)

# Kind of the complaint about a broker that takes no offsets.
NOT_COMMITTED = "not committed"


class RemoteOffsetStore(OffsetStore):
    """`may_commit` says whether a queue is this member's to commit: brokers take any offset, also a smaller one.

    A member of a group that consumes in order and was paused for long may find its locks gone and the group further on
    than itself.
    """

    def __init__(self, brokers: Brokers, may_commit: Callable[[MessageQueue], bool] = lambda _: True) -> None:
        super().__init__()
        self._brokers = brokers
        self._may_commit = may_commit
        self._loaded: dict[MessageQueue, int] = {}
        self._complaints = ComplaintLog(logger)

    async def load(self, queue: MessageQueue) -> int | None:
        self.forget(queue)
        committed = await self._brokers.committed_offset(queue)
        if committed:
            self._loaded[queue] = committed
        return committed

    def reset(self, queue: MessageQueue, offset: int) -> None:
        self._loaded.pop(queue, None)
        super().reset(queue, offset)

    def forget(self, queue: MessageQueue) -> None:
        self._loaded.pop(queue, None)
        super().forget(queue)

    def offset_with_pull(self, queue: MessageQueue) -> int:
        held = self.held_offset(queue)
        return held if held is not None and self._is_to_send(queue) else 0

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        await self._commit_each(filter(self._is_to_send, queues), self._brokers.commit_oneway)

    async def persist_and_confirm(self, queues: Iterable[MessageQueue]) -> list[MessageQueue]:
        failed: list[MessageQueue] = []
        for together in commit_rounds(self._held(filter(self._is_to_send, queues))):
            failed += await self._commit_each(together, self._brokers.commit)
        return failed

    def _is_to_send(self, queue: MessageQueue) -> bool:
        return self._may_commit(queue) and self.held_offset(queue) != self._loaded.get(queue)

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
