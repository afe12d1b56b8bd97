"""What the data source asks brokers about one topic: its queues, where they begin and end, their messages.

Sends no heartbeat, commits nothing, and pulls as the group that every broker has for tools, so nothing of it stays on
the cluster. A broker that cannot be reached, or is busy, is asked again for `retry_s`; what it refuses is not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import closing
from typing import Any, Self, TypeVar

from remoting.client.admin.messages import TOOLS_GROUP
from remoting.client.errors import BrokerRefused, RouteNotFound
from remoting.client.event_loop_thread import EventLoopThread
from remoting.client.instance import ClientInstance
from remoting.client.pull_answer import PullAnswer, PullStatus
from remoting.client.queue_requests import QueueRequests
from remoting.spark.errors import MessagesLost
from remoting.spark.options import Options
from remoting.spark.positions import EARLIEST, LATEST, Moment
from remoting.spark.reading import Step, take
from remoting.spark.spans import Span, queue_name
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.codes import ResponseCode
from remoting.wire.expressions import SqlExpression, tags_or_sql
from remoting.wire.names import with_namespace

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Between two attempts; a broker that starts needs about a second.
RETRY_PAUSE_S = 0.5
_ALL = tags_or_sql("*", None)
_BUSY = (ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE)
# What a broker says of a queue that it does not have.
_GONE = (ResponseCode.TOPIC_NOT_EXIST, ResponseCode.INVALID_PARAMETER)


class TopicClient:
    """For code without an event loop; its requests run in a thread of its own. `close()`, or a `with` block."""

    def __init__(self, options: Options, retry_s: float | None = None) -> None:
        """`retry_s`: in place of that of the options. Raises ValueError without a name server."""
        self._thread = EventLoopThread(f"rocketmq source {options.topic}")
        patience_s = options.retry_s if retry_s is None else retry_s
        self._asking = self._thread.call(lambda: _Asking(options, patience_s))
        self._options = options

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with closing(self._thread):
            self._thread.run(self._asking.instance.close())

    def queues(self) -> list[str]:
        """Returns the names of the queues that can be read now, from a name server. Raises RouteNotFound."""
        return self._thread.run(self._asking.queues())

    def firsts(self, queues: Collection[str]) -> dict[str, int]:
        """Returns the offset of the first message that can be read, by queue."""
        return self._thread.run(self._asking.each(queues, self._asking.first))

    def firsts_of_those_there(self, queues: Collection[str]) -> dict[str, int]:
        """Returns the same without queues that are gone with their topic."""
        found = self._thread.run(self._asking.each(queues, self._asking.first_if_there))
        return {queue: first for queue, first in found.items() if first is not None}

    def ends(self, queues: Collection[str]) -> dict[str, int]:
        """Returns the offset one past the last message, by queue."""
        return self._thread.run(self._asking.each(queues, self._asking.end))

    def offsets(self, queues: Collection[str], position: int | Moment) -> dict[str, int]:
        """Returns the offset at EARLIEST, at LATEST or at a moment, by queue."""
        if position == EARLIEST:
            return self.firsts(queues)
        if position == LATEST:
            return self.ends(queues)
        assert isinstance(position, Moment)
        return self._thread.run(self._asking.each(queues, lambda queue: self._asking.at(queue, position.ms)))

    def steps(self, span: Span) -> Iterator[Step]:
        """Yields what is in a span, in order; while a step is worked on, the next is under way.

        Raises MessagesLost for the first message that is missing, unless the options say to go on.
        """
        options = self._options
        is_dense = options.expression.matches_all and not isinstance(options.expression, SqlExpression)
        offset, under_way = span.start, self._pull(span, span.start)
        try:
            while offset < span.end:
                step = take(span, offset, under_way.result(), is_dense=is_dense)
                if step.next_offset == offset:
                    step = Step([], span.end, Span(span.queue, offset, span.end))
                if step.lost is not None:
                    self._judge(step.lost)
                offset = step.next_offset
                if offset < span.end:
                    under_way = self._pull(span, offset)
                yield step
        finally:
            under_way.cancel()

    def _pull(self, span: Span, offset: int) -> Future[PullAnswer]:
        return self._thread.submit(self._asking.pull(span.queue, offset))

    def _judge(self, lost: Span) -> None:
        error = MessagesLost(self._options.topic, lost)
        if self._options.fail_on_data_loss:
            raise error
        logger.warning("%s", error)


class _Asking:
    """The coroutines behind it, all on one event loop."""

    def __init__(self, options: Options, retry_s: float) -> None:
        self.instance = ClientInstance(options.namesrv)
        self._options = options
        self._retry_s = retry_s
        self._topic = with_namespace(options.namespace, options.topic)
        self._requests = QueueRequests(self.instance, TOOLS_GROUP, options.namespace)

    async def queues(self) -> list[str]:
        await self._persist(lambda: self.instance.routes.refresh(self._topic))
        found = await self._requests.queues(self._options.topic)
        return [queue_name(queue.broker_name, queue.queue_id) for queue in found]

    async def each(self, queues: Collection[str], ask: Callable[[str], Coroutine[Any, Any, T]]) -> dict[str, T]:
        return dict(zip(queues, await asyncio.gather(*map(ask, queues)), strict=True))

    async def first(self, queue: str) -> int:
        return await self._persist(lambda: self._requests.min_offset(self._queue(queue)))

    async def first_if_there(self, queue: str) -> int | None:
        try:
            return await self.first(queue)
        except RouteNotFound:
            return None
        except BrokerRefused as error:
            if error.code in _GONE:
                return None
            raise

    async def end(self, queue: str) -> int:
        return await self._persist(lambda: self._requests.max_offset(self._queue(queue)))

    async def at(self, queue: str, moment_ms: int) -> int:
        """Returns the offset of the first message that was stored then or later.

        Apache's 4 line answers one that was stored about then, and the last one where all are older. So what the
        broker says is looked at, and searched by halves where it is not so.
        """
        low, high = await self.first(queue), await self.end(queue)
        near = await self._persist(lambda: self._requests.offset_at(self._queue(queue), moment_ms))
        # What lies before `low` is older, what lies at `high` and behind it is not.
        for probe in (near, near - 1):
            if low <= probe < high:
                low, high = await self._narrowed(queue, low, high, probe, moment_ms)
        while low < high:
            low, high = await self._narrowed(queue, low, high, (low + high) // 2, moment_ms)
        return low

    async def _narrowed(self, queue: str, low: int, high: int, probe: int, moment_ms: int) -> tuple[int, int]:
        """Returns the half in which the first message of the moment is; one that was just deleted was older."""
        place = self._queue(queue)
        answer = await self._persist(lambda: self._requests.pull_stored(place, probe, _ALL, count=1))
        is_older = not answer.messages or answer.messages[0].store_timestamp_ms < moment_ms
        return (probe + 1, high) if is_older else (low, probe)

    async def pull(self, queue: str, offset: int) -> PullAnswer:
        """Pulls; where the queue ends at `offset`, which it should not, it is waited for like a broker that is away."""
        place = self._queue(queue)

        async def pulled() -> PullAnswer:
            answer = await self._requests.pull_stored(place, offset, self._options.expression)
            if answer.status is PullStatus.NO_NEW_MESSAGE or answer.next_offset <= offset:
                raise _EndsEarly(answer)
            return answer

        try:
            return await self._persist(pulled)
        except _EndsEarly as early:
            return early.answer

    async def _persist(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Returns what `ask` does; what time may mend is tried again, with a route that is asked for anew."""
        clock = asyncio.get_running_loop().time
        give_up_at = clock() + self._retry_s
        while True:
            try:
                return await ask()
            except (ConnectionError, TimeoutError, BrokerRefused, _EndsEarly) as error:
                if isinstance(error, BrokerRefused) and error.code not in _BUSY:
                    raise
                if clock() + RETRY_PAUSE_S > give_up_at:
                    raise
            self.instance.routes.expire(self._topic)
            await asyncio.sleep(RETRY_PAUSE_S)

    def _queue(self, name: str) -> MessageQueue:
        broker_name, _, queue_id = name.rpartition(":")
        return MessageQueue(self._options.topic, broker_name, int(queue_id))


class _EndsEarly(Exception):
    def __init__(self, answer: PullAnswer) -> None:
        self.answer = answer
