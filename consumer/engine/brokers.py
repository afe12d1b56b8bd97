"""The requests of one consumer group to the brokers, by message queue instead of by address.

Finds the broker in the routes; retries nothing, since callers decide what a failure means. Every method raises
ClientError, or BodyError and HeaderError for an answer that cannot be read.
"""

from __future__ import annotations

import random

import msgspec

from remoting.client.admin import Admin
from remoting.client.admin.requests import Limits
from remoting.client.errors import BrokerRefused, NotConnected
from remoting.client.instance import ClientInstance
from remoting.wire.bodies.check_client import CheckClientBody
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.queue_locks import LockRequest, read_locked, write_lock_request
from remoting.wire.bodies.route import MASTER_ID
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.groups import SendMessageBackHeader
from remoting.wire.headers.offsets import UpdateConsumerOffsetHeader
from remoting.wire.headers.pull import PullMessageHeader
from remoting.wire.headers.typed import write_header

# How long the broker may hold a pull, and how long its answer is awaited.
PULL_SUSPEND_MS = 15_000
PULL_TIMEOUT_MS = 30_000
# Of CHECK_CLIENT_CONFIG, as Java's `mqClientApiTimeout`.
CHECK_TIMEOUT_MS = 3000
# Of CONSUMER_SEND_MSG_BACK.
SEND_BACK_TIMEOUT_MS = 5000
# Of LOCK_BATCH_MQ and UNLOCK_BATCH_MQ.
LOCK_TIMEOUT_MS = 1000

# What asks about a member's own queues is part of consuming: not to wait behind each other as a tool's requests do.
_LIMITS = Limits(per_server=64)


class Brokers:
    def __init__(self, client: ClientInstance, group: str) -> None:
        self._client = client
        self._group = group
        self._admin = Admin(client.connections, limits=_LIMITS)

    async def pull(self, header: PullMessageHeader, broker_name: str, broker_id: int) -> Command:
        """Returns the answer, whatever its code."""
        address = self._read_address(broker_name, broker_id)
        request = Command(code=RequestCode.PULL_MESSAGE, ext_fields=write_header(header))
        return await self._client.connections.request(address, request, PULL_TIMEOUT_MS)

    async def member_ids(self, topic: str) -> list[str]:
        """Returns the client ids of the group's members that a broker of the topic, chosen at random, lists."""
        route = await self._client.routes.get(topic)
        names = [broker.broker_name for broker in route.broker_datas]
        if not names:
            raise NotConnected(f"topic {topic!r}", "its route names no broker")
        return await self._admin.clients.consumer_ids(self._read_address(random.choice(names)), self._group)

    async def check_subscription(self, subscription: SubscriptionData) -> None:
        """Asks one broker of the topic whether it can evaluate the expression. Raises BrokerRefused when it can't."""
        route = await self._client.routes.get(subscription.topic)
        if not route.broker_datas:
            return
        address = self._read_address(random.choice(route.broker_datas).broker_name)
        body = CheckClientBody(
            client_id=self._client.client_id, group=self._group, subscription_data=msgspec.to_builtins(subscription)
        )
        request = Command(code=RequestCode.CHECK_CLIENT_CONFIG, body=write_body(body))
        answer = await self._client.connections.request(address, request, CHECK_TIMEOUT_MS)
        if answer.code != ResponseCode.SUCCESS:
            about = f"group {self._group!r} on topic {subscription.topic!r}"
            raise BrokerRefused(address, request.code, answer.code, answer.remark, about)

    async def committed_offset(self, queue: MessageQueue) -> int | None:
        """Returns the group's committed offset; None when the broker has none."""
        address = self._read_address(queue.broker_name)
        return await self._admin.offsets.committed(address, self._group, queue.topic, queue.queue_id)

    async def max_offset(self, queue: MessageQueue) -> int:
        return await self._admin.offsets.max(self._read_address(queue.broker_name), queue.topic, queue.queue_id)

    async def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> int:
        address = self._read_address(queue.broker_name)
        return await self._admin.offsets.search(address, queue.topic, queue.queue_id, timestamp_ms)

    async def commit_oneway(self, queue: MessageQueue, offset: int) -> None:
        header = UpdateConsumerOffsetHeader(
            consumer_group=self._group, topic=queue.topic, queue_id=queue.queue_id, commit_offset=offset
        )
        request = Command(code=RequestCode.UPDATE_CONSUMER_OFFSET, ext_fields=write_header(header))
        await self._client.connections.oneway(self._read_address(queue.broker_name), request)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Returns when the broker has acknowledged it."""
        address = self._read_address(queue.broker_name)
        await self._admin.offsets.commit(address, self._group, queue.topic, queue.queue_id, offset)

    async def send_back(self, broker_name: str, header: SendMessageBackHeader) -> None:
        """Returns when the broker has stored the retry, or the dead letter."""
        address = self._client.routes.master_address(broker_name)
        if address is None:
            raise NotConnected(broker_name, "no route names a master of this broker")
        request = Command(code=RequestCode.CONSUMER_SEND_MSG_BACK, ext_fields=write_header(header))
        answer = await self._client.connections.request(address, request, SEND_BACK_TIMEOUT_MS)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerRefused(address, request.code, answer.code, answer.remark, f"group {self._group!r}")

    async def lock(self, broker_name: str, queues: list[MessageQueue]) -> list[MessageQueue]:
        """Returns those of the queues that this member has locked now."""
        answer = await self._ask_locks(RequestCode.LOCK_BATCH_MQ, broker_name, queues)
        return read_locked(answer.body)

    async def unlock(self, broker_name: str, queues: list[MessageQueue]) -> None:
        """Returns when the broker has unlocked them."""
        await self._ask_locks(RequestCode.UNLOCK_BATCH_MQ, broker_name, queues)

    def master_connection(self, broker_name: str) -> object | None:
        """Returns the open connection to the broker's master: another one means that it was lost meanwhile."""
        address = self._client.routes.master_address(broker_name)
        return self._client.connections.current(address) if address is not None else None

    async def _ask_locks(self, code: int, broker_name: str, queues: list[MessageQueue]) -> Command:
        address = self._client.routes.master_address(broker_name)
        if address is None:
            raise NotConnected(broker_name, "no route names a master of this broker")
        wanted = LockRequest(client_id=self._client.client_id, consumer_group=self._group, queues=queues)
        request = Command(code=code, body=write_lock_request(wanted))
        answer = await self._client.connections.request(address, request, LOCK_TIMEOUT_MS)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerRefused(address, code, answer.code, answer.remark, f"group {self._group!r}")
        return answer

    def _read_address(self, broker_name: str, broker_id: int = int(MASTER_ID)) -> str:
        address = self._client.routes.read_address(broker_name, broker_id)
        if address is None:
            raise NotConnected(broker_name, "no route names this broker")
        return address
