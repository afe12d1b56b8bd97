"""The requests of a pull consumer about single queues: pull, committed offsets, the ends of queues.

Finds the broker in the routes, and pulls from the replica that the broker suggested last. Retries nothing. All offsets
are queue offsets; a committed one is the next to consume. Every method raises ClientError, and BodyError or HeaderError
for an answer that cannot be read.

In a namespace callers see topics without it; brokers know `prod%orders` (Java `ClientConfig.setNamespace`).
"""

from __future__ import annotations

from dataclasses import dataclass

from remoting.client.admin import Admin
from remoting.client.admin.requests import Limits
from remoting.client.errors import BrokerRefused, NotConnected
from remoting.client.instance import ClientInstance
from remoting.client.pull_answer import PullAnswer, PullStatus, read_pull_answer
from remoting.client.received_message import ReceivedMessage, received
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.route import MASTER_ID
from remoting.wire.codes import RequestCode
from remoting.wire.command import Command
from remoting.wire.expressions import Expression, expression_type
from remoting.wire.headers.pull import LITE_PULL_FLAG, SUBSCRIPTION_FLAG, SUSPEND_FLAG, PullMessageHeader
from remoting.wire.headers.typed import write_header
from remoting.wire.limits import PULL_BYTES_MAX, PULL_MESSAGES_MAX
from remoting.wire.names import with_namespace, without_namespace

# What an answer may take beyond the time that the broker holds the pull (`consumerPullTimeoutMillis`).
PULL_TIMEOUT_MS = 10_000
# Offsets are asked and committed queue by queue; one broker's queues do not wait behind each other.
_LIMITS = Limits(per_server=64)
# Replicas that were suggested; beyond it the oldest is forgotten, and the master asked.
_SUGGESTIONS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class PullResult:
    """The answer to one pull. `next_offset` is where to go on; `messages` are those that match, in order.

    FOUND may hold no message: the broker compares hashes of tags, and what only collides is left out.
    """

    status: PullStatus
    next_offset: int
    min_offset: int
    max_offset: int
    messages: list[ReceivedMessage]


class QueueRequests:
    """`group` as brokers know it, with its namespace."""

    def __init__(self, instance: ClientInstance, group: str, namespace: str = "") -> None:
        self._instance = instance
        self._group = group
        self._namespace = namespace
        self._admin = Admin(instance.connections, limits=_LIMITS)
        self._suggested: dict[MessageQueue, int] = {}

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the readable queues of a topic. Raises RouteNotFound, too."""
        found = await self._instance.routes.subscribe_queues(with_namespace(self._namespace, topic))
        return tuple(self.declared(queue) for queue in found)

    def declared(self, queue: MessageQueue) -> MessageQueue:
        """Returns a queue of a route as callers see it."""
        return queue._replace(topic=without_namespace(self._namespace, queue.topic))

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        expression: Expression,
        *,
        count: int = PULL_MESSAGES_MAX,
        wait_ms: int = 0,
        is_lite: bool = False,
    ) -> PullResult:
        """Pulls at most `count` messages; a broker that has none holds the pull for `wait_ms`.

        Raises BodyError where one body of them cannot be read, too.
        """
        read = await self.pull_stored(queue, offset, expression, count=count, wait_ms=wait_ms, is_lite=is_lite)
        messages = [received(message, queue, self._namespace) for message in read.messages]
        return PullResult(read.status, read.next_offset, read.min_offset, read.max_offset, messages)

    async def pull_stored(
        self,
        queue: MessageQueue,
        offset: int,
        expression: Expression,
        *,
        count: int = PULL_MESSAGES_MAX,
        wait_ms: int = 0,
        is_lite: bool = False,
    ) -> PullAnswer:
        """Pulls messages as brokers store them, topics with their namespace, bodies as they were sent.

        The subscription travels with the pull, so the broker need not know the group's heartbeat.
        """
        address, topic = await self._place(queue, self._suggested.get(queue, int(MASTER_ID)))
        flags = SUBSCRIPTION_FLAG | (SUSPEND_FLAG if wait_ms else 0) | (LITE_PULL_FLAG if is_lite else 0)
        header = PullMessageHeader(
            consumer_group=self._group,
            topic=topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=count,
            sys_flag=flags,
            commit_offset=0,
            suspend_timeout_millis=wait_ms,
            subscription=expression.text,
            sub_version=0,
            expression_type=expression_type(expression),
            max_msg_bytes=PULL_BYTES_MAX,
            bname=queue.broker_name,
        )
        code = RequestCode.LITE_PULL_MESSAGE if is_lite else RequestCode.PULL_MESSAGE
        request = Command(code=code, ext_fields=write_header(header))
        answer = await self._instance.connections.request(address, request, wait_ms + PULL_TIMEOUT_MS)
        read = read_pull_answer(answer, lambda message: expression.matches(message.tags))
        if read is None:
            raise BrokerRefused(address, request.code, answer.code, answer.remark, f"{queue}")
        if len(self._suggested) >= _SUGGESTIONS_MAX:
            del self._suggested[next(iter(self._suggested))]
        self._suggested[queue] = read.suggested_broker_id
        return read

    async def committed(self, queue: MessageQueue) -> int | None:
        """Returns the group's committed offset; None when the broker has none."""
        address, topic = await self._place(queue)
        return await self._admin.offsets.committed(address, self._group, topic, queue.queue_id)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Returns when the broker has the group's offset, which may be lower than before."""
        address, topic = await self._place(queue)
        await self._admin.offsets.commit(address, self._group, topic, queue.queue_id, offset)

    async def min_offset(self, queue: MessageQueue) -> int:
        address, topic = await self._place(queue)
        return await self._admin.offsets.min(address, topic, queue.queue_id)

    async def max_offset(self, queue: MessageQueue) -> int:
        address, topic = await self._place(queue)
        return await self._admin.offsets.max(address, topic, queue.queue_id)

    async def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """Returns the offset of the first message that was stored at `timestamp_ms` or later."""
        address, topic = await self._place(queue)
        return await self._admin.offsets.search(address, topic, queue.queue_id, timestamp_ms)

    async def _place(self, queue: MessageQueue, broker_id: int = int(MASTER_ID)) -> tuple[str, str]:
        """Returns the broker's address, and the queue's topic as it knows it."""
        topic = with_namespace(self._namespace, queue.topic)
        await self._instance.routes.get(topic)
        address = self._instance.routes.read_address(queue.broker_name, broker_id)
        if address is None:
            raise NotConnected(queue.broker_name, "no route names this broker")
        return address, topic
