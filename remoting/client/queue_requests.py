"""The requests of a pull consumer about single queues: pull, committed offsets, the ends of queues.

Finds the broker in the routes, and pulls from the replica that the broker suggested last. Retries nothing. All offsets
are queue offsets; a committed one is the next to consume. Every method raises ClientError, and BodyError or HeaderError
for an answer that cannot be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from remoting.client.admin import Admin
from remoting.client.admin.requests import Limits
from remoting.client.errors import BrokerRefused, NotConnected
from remoting.client.instance import ClientInstance
from remoting.client.received_message import ReceivedMessage, received
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.route import MASTER_ID
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.pull import (
    LITE_PULL_FLAG,
    SUBSCRIPTION_FLAG,
    SUSPEND_FLAG,
    PullMessageHeader,
    PullMessageResponseHeader,
)
from remoting.wire.headers.typed import read_header, write_header
from remoting.wire.limits import PULL_BYTES_MAX, PULL_MESSAGES_MAX
from remoting.wire.stored_message import StoredMessage, decode_messages
from remoting.wire.tags import TagExpression

# What an answer may take beyond the time that the broker holds the pull (`consumerPullTimeoutMillis`).
PULL_TIMEOUT_MS = 10_000
# Offsets are asked and committed queue by queue; one broker's queues do not wait behind each other.
_LIMITS = Limits(per_server=64)
# Replicas that were suggested; beyond it the oldest is forgotten, and the master asked.
_SUGGESTIONS_MAX = 10_000


class PullStatus(Enum):
    FOUND = "found"
    NO_NEW_MESSAGE = "no new message"
    NO_MATCHED_MESSAGE = "no matched message"
    OFFSET_ILLEGAL = "offset illegal"


_STATUSES: dict[int, PullStatus] = {
    ResponseCode.SUCCESS: PullStatus.FOUND,
    ResponseCode.PULL_NOT_FOUND: PullStatus.NO_NEW_MESSAGE,
    ResponseCode.PULL_RETRY_IMMEDIATELY: PullStatus.NO_MATCHED_MESSAGE,
    ResponseCode.PULL_OFFSET_MOVED: PullStatus.OFFSET_ILLEGAL,
}


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
    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group
        self._admin = Admin(instance.connections, limits=_LIMITS)
        self._suggested: dict[MessageQueue, int] = {}

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the readable queues of a topic. Raises RouteNotFound, too."""
        return await self._instance.routes.subscribe_queues(topic)

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        expression: TagExpression,
        *,
        count: int = PULL_MESSAGES_MAX,
        wait_ms: int = 0,
        is_lite: bool = False,
    ) -> PullResult:
        """Pulls at most `count` messages; a broker that has none holds the pull for `wait_ms`.

        The subscription travels with the pull, so the broker need not know the group's heartbeat.
        """
        address = await self._address(queue, self._suggested.get(queue, int(MASTER_ID)))
        flags = SUBSCRIPTION_FLAG | (SUSPEND_FLAG if wait_ms else 0) | (LITE_PULL_FLAG if is_lite else 0)
        header = PullMessageHeader(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=count,
            sys_flag=flags,
            commit_offset=0,
            suspend_timeout_millis=wait_ms,
            subscription=expression.text,
            sub_version=0,
            expression_type="TAG",
            max_msg_bytes=PULL_BYTES_MAX,
            bname=queue.broker_name,
        )
        code = RequestCode.LITE_PULL_MESSAGE if is_lite else RequestCode.PULL_MESSAGE
        request = Command(code=code, ext_fields=write_header(header))
        answer = await self._instance.connections.request(address, request, wait_ms + PULL_TIMEOUT_MS)
        return self._read(queue, address, request, answer, expression)

    def _read(
        self, queue: MessageQueue, address: str, request: Command, answer: Command, expression: TagExpression
    ) -> PullResult:
        status = _STATUSES.get(answer.code)
        if status is None:
            raise BrokerRefused(address, request.code, answer.code, answer.remark, f"{queue}")
        place = read_header(PullMessageResponseHeader, answer.ext_fields)
        if len(self._suggested) >= _SUGGESTIONS_MAX:
            del self._suggested[next(iter(self._suggested))]
        self._suggested[queue] = place.suggest_which_broker_id
        stored: list[StoredMessage] = decode_messages(answer.body) if status is PullStatus.FOUND else []
        messages = [received(message, queue) for message in stored if expression.matches(message.tags)]
        return PullResult(status, place.next_begin_offset, place.min_offset, place.max_offset, messages)

    async def committed(self, queue: MessageQueue) -> int | None:
        """Returns the group's committed offset; None when the broker has none."""
        address = await self._address(queue)
        return await self._admin.offsets.committed(address, self._group, queue.topic, queue.queue_id)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Returns when the broker has the group's offset, which may be lower than before."""
        address = await self._address(queue)
        await self._admin.offsets.commit(address, self._group, queue.topic, queue.queue_id, offset)

    async def min_offset(self, queue: MessageQueue) -> int:
        return await self._admin.offsets.min(await self._address(queue), queue.topic, queue.queue_id)

    async def max_offset(self, queue: MessageQueue) -> int:
        return await self._admin.offsets.max(await self._address(queue), queue.topic, queue.queue_id)

    async def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """Returns the offset of the first message that was stored at `timestamp_ms` or later."""
        address = await self._address(queue)
        return await self._admin.offsets.search(address, queue.topic, queue.queue_id, timestamp_ms)

    async def _address(self, queue: MessageQueue, broker_id: int = int(MASTER_ID)) -> str:
        await self._instance.routes.get(queue.topic)
        address = self._instance.routes.read_address(queue.broker_name, broker_id)
        if address is None:
            raise NotConnected(queue.broker_name, "no route names this broker")
        return address
