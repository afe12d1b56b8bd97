"""Tells the brokers which producer and consumer groups this client has (RocketMQ's `sendHeartbeatToAllBroker`).

Sent 1 s after start, then every 30 s; at once by `send_now()`, after a group was added or a subscription changed; and
as the first request on every new connection to a broker, so that one that was restarted knows the groups before their
other requests. They go to masters; to slaves as well when the client has consumers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import cast

from remoting.client.config import ClientConfig
from remoting.client.connections import REQUEST_TIMEOUT_MS, Connections
from remoting.client.errors import ClientError, GroupTaken
from remoting.client.routes import Routes
from remoting.connection import Connection
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.heartbeat import ConsumerData, HeartbeatData, ProducerData
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.groups import UnregisterClientHeader
from remoting.wire.headers.typed import write_header

logger = logging.getLogger(__name__)

_CONTEXT_KEY = "first heartbeat"

# Returns a consumer group's entry as it is at this moment; called for every heartbeat.
DescribeConsumer = Callable[[], ConsumerData]


class Heartbeats:
    """Callers: producer, consumer. Affects: `connections.connected`, which it takes for itself."""

    def __init__(
        self, connections: Connections, routes: Routes, client_id: str, *, config: ClientConfig | None = None
    ) -> None:
        self.config = config or ClientConfig()
        self.client_id = client_id
        self._connections = connections
        self._routes = routes
        self._producer_groups: set[str] = set()
        self._consumers: dict[str, DescribeConsumer] = {}
        self._failing: set[str] = set()
        self._loop_task: asyncio.Task[None] | None = None
        connections.connected = self._connection_made

    def start(self) -> None:
        """Starts sending heartbeats on the running loop."""
        if self._loop_task is None:
            self._loop_task = asyncio.create_task(self._send_periodically(), name="heartbeats")

    async def close(self) -> None:
        """Stops sending heartbeats. Unregisters nothing: that is `remove_producer` and `remove_consumer`."""
        if self._loop_task is not None:
            self._loop_task.cancel()
            await asyncio.gather(self._loop_task, return_exceptions=True)
            self._loop_task = None

    def add_producer(self, group: str) -> None:
        """Adds a producer group; the next heartbeats name it."""
        self._producer_groups.add(group)

    def add_consumer(self, group: str, describe: DescribeConsumer) -> None:
        """Adds a consumer group. Raises GroupTaken when this client has it already (Java's "has been created before").

        Call `send_now()` next: a broker refuses pulls of groups that no heartbeat has named.
        """
        if group in self._consumers:
            raise GroupTaken(self.client_id, group)
        self._consumers[group] = describe

    async def remove_producer(self, group: str) -> None:
        """Forgets the group and unregisters it from every broker that may know it."""
        self._producer_groups.discard(group)
        await self._unregister(UnregisterClientHeader(client_id=self.client_id, producer_group=group))

    async def remove_consumer(self, group: str) -> None:
        """Unregisters as `remove_producer` does; the broker notifies the other members at once."""
        self._consumers.pop(group, None)
        await self._unregister(UnregisterClientHeader(client_id=self.client_id, consumer_group=group))

    async def send_now(self) -> set[str]:
        """Sends a heartbeat to every known broker; returns the addresses that accepted it. Logs those that did not."""
        if self._has_no_groups:
            return set()
        addresses = self._addresses()
        accepted = await asyncio.gather(*(self._send(address) for address in addresses))
        return {address for address, ok in zip(addresses, accepted, strict=True) if ok}

    @property
    def _has_no_groups(self) -> bool:
        return not self._producer_groups and not self._consumers

    def _addresses(self) -> list[str]:
        return sorted(self._routes.broker_addresses(with_slaves=bool(self._consumers)))

    def _command(self) -> Command:
        data = HeartbeatData(
            client_id=self.client_id,
            consumer_data_set=[describe() for describe in self._consumers.values()],
            producer_data_set=[ProducerData(group_name=group) for group in sorted(self._producer_groups)],
        )
        return Command(code=RequestCode.HEART_BEAT, body=write_body(data))

    def _connection_made(self, address: str, connection: Connection) -> None:
        if not self._has_no_groups and address in self._addresses():
            first = asyncio.ensure_future(connection.request(self._command(), REQUEST_TIMEOUT_MS))
            first.add_done_callback(lambda done: done.cancelled() or done.exception())  # it may never be awaited
            connection.context[_CONTEXT_KEY] = first

    async def _send(self, address: str) -> bool:
        try:
            answer = await self._answer(address)
        except (ClientError, OSError) as error:
            self._failed(address, str(error))
            return False
        if answer.code != ResponseCode.SUCCESS:
            self._failed(address, f"{answer}")
            return False
        if address in self._failing:
            self._failing.discard(address)
            logger.info("broker %s accepts heartbeats again", address)
        return True

    async def _answer(self, address: str) -> Command:
        """Returns the response to the heartbeat that a new connection began with, or to one sent now."""
        if not self._connections.is_open(address):
            connection = await self._connections.get(address)
            first = cast("Awaitable[Command] | None", connection.context.get(_CONTEXT_KEY))
            if first is not None:
                return await asyncio.shield(first)
        return await self._connections.request(address, self._command())

    def _failed(self, address: str, reason: str) -> None:
        """Logs a warning at the first failure in a row, the others at debug level."""
        level = logging.DEBUG if address in self._failing else logging.WARNING
        self._failing.add(address)
        logger.log(level, "broker %s did not accept a heartbeat: %s", address, reason)

    async def _unregister(self, header: UnregisterClientHeader) -> None:
        async def one(address: str) -> None:
            request = Command(code=RequestCode.UNREGISTER_CLIENT, ext_fields=write_header(header))
            try:
                await self._connections.request(address, request, self.config.unregister_timeout_ms)
            except ClientError as error:
                logger.info("could not unregister from broker %s: %s", address, error)

        addresses = self._routes.broker_addresses(with_slaves=True)
        await asyncio.gather(*(one(address) for address in addresses if self._connections.is_open(address)))

    async def _send_periodically(self) -> None:
        pause_s = self.config.heartbeat_first_after_s
        while True:
            await asyncio.sleep(pause_s)
            pause_s = self.config.heartbeat_interval_s
            try:
                await self.send_now()
            except Exception:  # a consumer that cannot describe itself must not silence the others for good
                logger.exception("a round of heartbeats failed; the next comes in %g s", pause_s)
            self._forget_gone()

    def _forget_gone(self) -> None:
        self._failing &= self._routes.broker_addresses(with_slaves=True)
