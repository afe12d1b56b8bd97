"""Which queues a lite pull consumer that subscribed has (Java `RebalanceLitePullImpl`).

Registers the group with its subscriptions, and asks again for queues and members every 20 s, when the broker says that
the members changed, when a route changed and when a subscription did; each second while that fails.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable

from remoting.allocation import allocate
from remoting.client.admin import Admin
from remoting.client.errors import ClientError, NotConnected, RouteNotFound
from remoting.client.instance import ClientInstance
from remoting.complaints import ComplaintLog
from remoting.connection import Connection
from remoting.wire.bodies.heartbeat import ConsumerData, SubscriptionData
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.codes import RequestCode
from remoting.wire.command import Command
from remoting.wire.errors import WireError
from remoting.wire.expressions import Expression, expression_type
from remoting.wire.names import AUTO_CREATE_TOPIC

logger = logging.getLogger(__name__)

INTERVAL_S = 20.0
FAILED_INTERVAL_S = 1.0
# Notifications that come together cost one rebalance.
WOKEN_PAUSE_S = 0.1

# Takes the queues of one topic that are this member's now.
Assign = Callable[[str, frozenset[MessageQueue]], Awaitable[None]]


class LiteMembership:
    """`start()` once, when the instance was started; `stop()`, then `leave()`. Lives on one event loop.

    Group and topics are as brokers know them.
    """

    def __init__(self, instance: ClientInstance, group: str, consume_from: str, strategy: str, assign: Assign) -> None:
        self.expressions: dict[str, Expression] = {}
        self._instance = instance
        self._admin = Admin(instance.connections)
        self._group = group
        self._consume_from = consume_from
        self._strategy = strategy
        self._assign = assign
        self._version_ms = 0
        self._woken = asyncio.Event()
        self._complaints = ComplaintLog(logger)
        self._task: asyncio.Task[None] | None = None
        instance.connections.on_request[RequestCode.NOTIFY_CONSUMER_IDS_CHANGED] = self._members_changed
        instance.routes.changed.append(self._route_changed)

    def start(self) -> None:
        """Joins the group: the first queues follow when brokers have answered."""
        self._instance.heartbeats.add_consumer(self._group, self._describe)
        self._task = asyncio.create_task(self._run(), name=f"lite rebalance {self._group}")

    async def stop(self) -> None:
        """Takes and gives no queue any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def leave(self) -> None:
        """Unregisters from the brokers; the other members take the queues now."""
        await self._instance.heartbeats.remove_consumer(self._group)

    def subscribe(self, topic: str, expression: Expression) -> None:
        """Adds a subscription or changes it; the brokers hear of it with the next rebalance, which comes at once."""
        self.expressions[topic] = expression
        self._subscriptions_changed()

    async def unsubscribe(self, topic: str) -> None:
        """Gives the topic's queues away."""
        if self.expressions.pop(topic, None) is not None:
            self._subscriptions_changed()
            await self._assign(topic, frozenset())

    def _subscriptions_changed(self) -> None:
        self._version_ms = max(self._version_ms + 1, time.time_ns() // 1_000_000)
        self._woken.set()

    def _members_changed(self, _: Connection, request: Command) -> None:
        if request.ext_fields.get("consumerGroup", self._group) == self._group:
            self._woken.set()

    def _route_changed(self, topic: str) -> None:
        if topic in self.expressions:
            self._woken.set()

    def _describe(self) -> ConsumerData:
        return ConsumerData(
            group_name=self._group,
            consume_type="CONSUME_ACTIVELY",
            consume_from_where=self._consume_from,
            subscription_data_set=[
                SubscriptionData(
                    topic=topic,
                    expression_type=expression_type(expression),
                    sub_string=expression.text,
                    tags_set=list(expression.tags),
                    code_set=sorted(expression.codes),
                    sub_version=self._version_ms,
                )
                for topic, expression in self.expressions.items()
            ],
        )

    async def _run(self) -> None:
        told_ms = 0
        while True:
            self._woken.clear()
            is_balanced = False
            try:
                if told_ms != self._version_ms:
                    version_ms = self._version_ms
                    await self._find_brokers()
                    await self._instance.heartbeats.send_now()
                    told_ms = version_ms
                is_balanced = await self._rebalance()
            except (ClientError, WireError) as error:
                self._complaints.warn(self._group, "waiting", "group %s waits: %s", self._group, error)
            except Exception:
                logger.exception("group %s: a rebalance failed", self._group)
            try:
                async with asyncio.timeout(INTERVAL_S if is_balanced else FAILED_INTERVAL_S):
                    await self._woken.wait()
                    await asyncio.sleep(WOKEN_PAUSE_S)
            except TimeoutError:
                pass

    async def _find_brokers(self) -> None:
        """Learns of the brokers to register at, where no topic of the group exists yet, too."""
        for topic in (*self.expressions, AUTO_CREATE_TOPIC):
            try:
                await self._instance.routes.get(topic)
            except RouteNotFound:
                continue

    async def _rebalance(self) -> bool:
        """Returns whether every topic is balanced."""
        is_balanced = True
        for topic in list(self.expressions):
            self._instance.routes.use(topic)
            try:
                queues = await self._instance.routes.subscribe_queues(topic)
            except RouteNotFound as error:
                self._complaints.warn(topic, "waiting", "group %s waits for a topic: %s", self._group, error)
                is_balanced = False
                continue
            members = await self._members(topic)
            if self._instance.client_id not in members:  # a broker that was restarted, say
                await self._instance.heartbeats.send_now()
                is_balanced = False
                continue
            mine = allocate(self._strategy, queues, members, self._instance.client_id)
            if topic in self.expressions:
                await self._assign(topic, mine)
        return is_balanced

    async def _members(self, topic: str) -> list[str]:
        route = await self._instance.routes.get(topic)
        addresses = [self._instance.routes.read_address(broker.broker_name) for broker in route.broker_datas]
        address = random.choice(addresses) if addresses else None
        if address is None:
            raise NotConnected(f"topic {topic!r}", "its route names no broker")
        return await self._admin.clients.consumer_ids(address, self._group)
