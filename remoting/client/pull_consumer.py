"""Pulls queues as its caller says, from offsets that its caller keeps (Java `DefaultMQPullConsumer`).

    async with PullConsumer("127.0.0.1:9876", "reports") as consumer:
        for queue in await consumer.queues("orders"):
            offset = await consumer.committed(queue) or 0
            result = await consumer.pull(queue, offset, wait_ms=5000)
            ...
            await consumer.commit(queue, result.next_offset)

For scripts without an event loop there is `BlockingPullConsumer` (`remoting/client/blocking.py`). Which member reads
which queue is the callers' affair: no queue is given out here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from remoting.client.errors import ClientError
from remoting.client.instance import ClientInstance
from remoting.client.queue_requests import PullResult, QueueRequests
from remoting.wire.bodies.heartbeat import ConsumerData
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.expressions import tags_or_sql
from remoting.wire.limits import PULL_MESSAGES_MAX
from remoting.wire.names import check_group, with_namespace

# `brokerSuspendMaxTimeMillis`.
WAIT_MS_MAX = 20_000


class PullConsumer:
    """One member of a group on one event loop. `await start()` first, `await close()` at the end."""

    def __init__(
        self,
        namesrv: str | Sequence[str],
        group: str,
        *,
        namespace: str = "",
        instance: ClientInstance | None = None,
    ) -> None:
        """Raises MessageError for an illegal group name, ValueError without a name server.

        `namespace`: brokers know the group and topics by names that begin with it; `group` has it from then on.
        `instance`: share another's connections; it is then started and closed by its owner.
        """
        self.group = with_namespace(namespace, group)
        check_group(self.group)
        self._instance = instance or ClientInstance(namesrv)
        self._owns_instance = instance is None
        self._requests = QueueRequests(self._instance, self.group, namespace)
        self._is_running = False

    async def start(self) -> None:
        """Registers the group with the brokers' heartbeats, without any subscription."""
        self._is_running = True
        self._instance.heartbeats.add_consumer(self.group, self._describe)
        if self._owns_instance:
            self._instance.start()

    async def close(self) -> None:
        """Unregisters from the brokers. Commits nothing."""
        self._is_running = False
        try:
            await self._instance.heartbeats.remove_consumer(self.group)
        finally:
            if self._owns_instance:
                await self._instance.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the readable queues of a topic (`fetchSubscribeMessageQueues`). Raises RouteNotFound."""
        self._check_running()
        return await self._requests.queues(topic)

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        tags: str = "*",
        sql: str | None = None,
        count: int = PULL_MESSAGES_MAX,
        wait_ms: int = 0,
    ) -> PullResult:
        """Pulls at most `count` messages (32) from `offset` on; a queue without any is waited for, `wait_ms` at most.

        `sql`: an SQL92 expression over the properties, in place of `tags`. Raises MessageError for an expression that
        is none, ValueError for a count or wait out of range, ClientError.
        """
        self._check_running()
        if not 1 <= count <= PULL_MESSAGES_MAX:
            raise ValueError(f"count is {count}; a broker answers 1 to {PULL_MESSAGES_MAX} messages at a time")
        if not 0 <= wait_ms <= WAIT_MS_MAX:
            raise ValueError(f"wait_ms is {wait_ms}; 0 to {WAIT_MS_MAX} are allowed")
        return await self._requests.pull(queue, offset, tags_or_sql(tags, sql), count=count, wait_ms=wait_ms)

    async def committed(self, queue: MessageQueue) -> int | None:
        """Returns the group's committed offset, the next to consume; None when there is none."""
        self._check_running()
        return await self._requests.committed(queue)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Returns when the broker has `offset`, the next to consume, as the group's; it may be lower than before."""
        self._check_running()
        await self._requests.commit(queue, offset)

    async def min_offset(self, queue: MessageQueue) -> int:
        """Returns the offset of the first message that can be read."""
        self._check_running()
        return await self._requests.min_offset(queue)

    async def max_offset(self, queue: MessageQueue) -> int:
        """Returns the offset one past the last message."""
        self._check_running()
        return await self._requests.max_offset(queue)

    async def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """Returns the offset of the first message stored at `timestamp_ms` (since the epoch) or later."""
        self._check_running()
        return await self._requests.offset_at(queue, timestamp_ms)

    def _check_running(self) -> None:
        if not self._is_running:
            raise ClientError(f"pull consumer {self.group!r} is not running: call start() first, nothing after close()")

    def _describe(self) -> ConsumerData:
        return ConsumerData(group_name=self.group, consume_type="CONSUME_ACTIVELY")
