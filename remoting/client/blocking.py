"""The pull consumers for code without an event loop: scripts, notebooks, Spark's executors.

    with BlockingLitePullConsumer("127.0.0.1:9876", "reports") as consumer:
        consumer.subscribe("orders")
        for message in consumer.poll(timeout_s=5):
            ...

Each method is that of the async consumer, and raises the same. Each consumer has an event loop in a thread of its own,
which pulls and sends heartbeats while the caller works. Calls may come from any thread, not from an event loop, and not
from a process that was forked after the consumer was made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import closing
from typing import Any, Self, TypeVar

from remoting.client.event_loop_thread import EventLoopThread
from remoting.client.lite_pull_consumer import POLL_TIMEOUT_S, LitePullConfig, LitePullConsumer
from remoting.client.pull_consumer import PullConsumer
from remoting.client.queue_requests import PullResult
from remoting.client.received_message import ReceivedMessage
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.limits import PULL_MESSAGES_MAX

T = TypeVar("T")


class BlockingPullConsumer:
    """`PullConsumer` for code without an event loop; `close()` at the end, or a `with` block."""

    def __init__(self, namesrv: str | Sequence[str], group: str, *, namespace: str = "") -> None:
        """Raises MessageError for an illegal group name, ValueError without a name server."""
        self._thread = EventLoopThread(f"pull consumer {group}")

        async def started() -> PullConsumer:
            consumer = PullConsumer(namesrv, group, namespace=namespace)
            await consumer.start()
            return consumer

        self._consumer = _made(self._thread, started)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with closing(self._thread):
            self._thread.run(self._consumer.close())

    def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        return self._thread.run(self._consumer.queues(topic))

    def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        tags: str = "*",
        sql: str | None = None,
        count: int = PULL_MESSAGES_MAX,
        wait_ms: int = 0,
    ) -> PullResult:
        return self._thread.run(self._consumer.pull(queue, offset, tags=tags, sql=sql, count=count, wait_ms=wait_ms))

    def committed(self, queue: MessageQueue) -> int | None:
        return self._thread.run(self._consumer.committed(queue))

    def commit(self, queue: MessageQueue, offset: int) -> None:
        self._thread.run(self._consumer.commit(queue, offset))

    def min_offset(self, queue: MessageQueue) -> int:
        return self._thread.run(self._consumer.min_offset(queue))

    def max_offset(self, queue: MessageQueue) -> int:
        return self._thread.run(self._consumer.max_offset(queue))

    def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> int:
        return self._thread.run(self._consumer.offset_at(queue, timestamp_ms))


class BlockingLitePullConsumer:
    """`LitePullConsumer` for code without an event loop; `close()` at the end, or a `with` block."""

    def __init__(self, namesrv: str | Sequence[str], group: str, config: LitePullConfig | None = None) -> None:
        """Raises MessageError for an illegal group name, ValueError without a name server."""
        self._thread = EventLoopThread(f"lite pull consumer {group}")

        async def started() -> LitePullConsumer:
            consumer = LitePullConsumer(namesrv, group, config)
            await consumer.start()
            return consumer

        self._consumer = _made(self._thread, started)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with closing(self._thread):
            self._thread.run(self._consumer.close())

    def subscribe(self, topic: str, tags: str = "*", *, sql: str | None = None) -> None:
        self._thread.call(lambda: self._consumer.subscribe(topic, tags, sql=sql))

    def unsubscribe(self, topic: str) -> None:
        self._thread.run(self._consumer.unsubscribe(topic))

    def assign(
        self,
        queues: Collection[MessageQueue],
        tags: Mapping[str, str] | None = None,
        *,
        sql: Mapping[str, str] | None = None,
    ) -> None:
        self._thread.run(self._consumer.assign(queues, tags, sql=sql))

    @property
    def assignment(self) -> frozenset[MessageQueue]:
        return self._thread.call(lambda: self._consumer.assignment)

    def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        return self._thread.run(self._consumer.queues(topic))

    def poll(self, timeout_s: float = POLL_TIMEOUT_S) -> list[ReceivedMessage]:
        return self._thread.run(self._consumer.poll(timeout_s))

    def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        self._thread.run(self._consumer.commit(offsets))

    def committed(self, queue: MessageQueue) -> int | None:
        return self._thread.run(self._consumer.committed(queue))

    def seek(self, queue: MessageQueue, offset: int) -> None:
        self._thread.run(self._consumer.seek(queue, offset))

    def seek_to_begin(self, queue: MessageQueue) -> None:
        self._thread.run(self._consumer.seek_to_begin(queue))

    def seek_to_end(self, queue: MessageQueue) -> None:
        self._thread.run(self._consumer.seek_to_end(queue))

    def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> int:
        return self._thread.run(self._consumer.offset_at(queue, timestamp_ms))

    def pause(self, queues: Collection[MessageQueue]) -> None:
        self._thread.call(self._consumer.pause, queues)

    def resume(self, queues: Collection[MessageQueue]) -> None:
        self._thread.call(self._consumer.resume, queues)


def _made(thread: EventLoopThread, started: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Returns what `started` makes on the loop; a failure leaves no thread behind."""
    try:
        return thread.run(started())
    except BaseException:
        thread.close()
        raise
