"""Tells the brokers which producers and consumers live in this client.

Rule times: 1 s after start, then every 30 s; at once by `send_now()`, for those who join or change a subscription;
and first of all on every new connection to a broker, so that a broker that was restarted knows us before we ask it
for anything. To masters only, or to slaves too when there are consumers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import cast

from remoting.client.connections import REQUEST_TIMEOUT_MS, Connections
from remoting.client.errors import ClientError
from remoting.client.routes import Routes
from remoting.connection import Connection
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.heartbeat import ConsumerData, HeartbeatData, ProducerData
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.groups import UnregisterClientHeader
from remoting.wire.headers.typed import write_header

logger = logging.getLogger(__name__)

FIRST_AFTER_S = 1.0
INTERVAL_S = 30.0
# A broker that hangs must not hold up a client that wants to stop.
UNREGISTER_TIMEOUT_MS = 1000
_CONTEXT_KEY = "first heartbeat"

# What a consumer group's entry is at this moment; asked at every beat.
DescribeConsumer = Callable[[], ConsumerData]


class Heartbeats:
    """Callers: producer, consumer. Affects: `connections.connected`, which it takes for itself."""

    def __init__(self, connections: Connections, routes: Routes, client_id: str) -> None:
        self.client_id = client_id
        self._connections = connections
        self._routes = routes
        self._producer_groups: set[str] = set()
        self._consumers: dict[str, DescribeConsumer] = {}
        self._versions: dict[str, int] = {}
        self._failing: set[str] = set()
        self._beat_loop: asyncio.Task[None] | None = None
        connections.connected = self._connection_made

    def start(self) -> None:
        if self._beat_loop is None:
            self._beat_loop = asyncio.create_task(self._beat_for_ever(), name="heartbeats")

    async def close(self) -> None:
        """Stops beating; says no goodbye: that is `remove_…`."""
        if self._beat_loop is not None:
            self._beat_loop.cancel()
            await asyncio.gather(self._beat_loop, return_exceptions=True)
            self._beat_loop = None

    def add_producer(self, group: str) -> None:
        self._producer_groups.add(group)

    def add_consumer(self, group: str, describe: DescribeConsumer) -> None:
        """Follow with `send_now()`: a broker answers pulls only of groups that it has heard of."""
        self._consumers[group] = describe

    async def remove_producer(self, group: str) -> None:
        """Forgets the group and unregisters it from every broker that may know it."""
        self._producer_groups.discard(group)
        await self._unregister(UnregisterClientHeader(client_id=self.client_id, producer_group=group))

    async def remove_consumer(self, group: str) -> None:
        """As `remove_producer`; the broker tells the other members at once."""
        self._consumers.pop(group, None)
        await self._unregister(UnregisterClientHeader(client_id=self.client_id, consumer_group=group))

    async def send_now(self) -> set[str]:
        """A heartbeat to every known broker; the addresses that accepted it. Never raises for one that did not."""
        if self._has_nothing_to_say:
            return set()
        addresses = self._addresses()
        accepted = await asyncio.gather(*(self._beat(address) for address in addresses))
        return {address for address, ok in zip(addresses, accepted, strict=True) if ok}

    def broker_version(self, address: str) -> int | None:
        """The version that the broker gave in its last answer: decides what it can be asked."""
        return self._versions.get(address)

    @property
    def _has_nothing_to_say(self) -> bool:
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
        if not self._has_nothing_to_say and address in self._addresses():
            first = asyncio.ensure_future(connection.request(self._command(), REQUEST_TIMEOUT_MS))
            first.add_done_callback(lambda done: done.cancelled() or done.exception())  # it may be nobody's
            connection.context[_CONTEXT_KEY] = first

    async def _beat(self, address: str) -> bool:
        try:
            answer = await self._answer(address)
        except (ClientError, OSError) as error:
            self._failed(address, str(error))
            return False
        if answer.code != ResponseCode.SUCCESS:
            self._failed(address, f"{answer}")
            return False
        self._versions[address] = answer.version
        if address in self._failing:
            self._failing.discard(address)
            logger.info("broker %s accepts heartbeats again", address)
        return True

    async def _answer(self, address: str) -> Command:
        """The answer to the heartbeat that a new connection began with, or to one sent now."""
        if not self._connections.is_open(address):
            connection = await self._connections.get(address)
            first = cast("Awaitable[Command] | None", connection.context.get(_CONTEXT_KEY))
            if first is not None:
                return await asyncio.shield(first)
        return await self._connections.request(address, self._command())

    def _failed(self, address: str, reason: str) -> None:
        """One warning when it begins; the rest is for those who look closely."""
        level = logging.DEBUG if address in self._failing else logging.WARNING
        self._failing.add(address)
        logger.log(level, "broker %s did not accept a heartbeat: %s", address, reason)

    async def _unregister(self, header: UnregisterClientHeader) -> None:
        async def one(address: str) -> None:
            request = Command(code=RequestCode.UNREGISTER_CLIENT, ext_fields=write_header(header))
            try:
                await self._connections.request(address, request, UNREGISTER_TIMEOUT_MS)
            except ClientError as error:
                logger.info("could not say goodbye to broker %s: %s", address, error)

        addresses = self._routes.broker_addresses(with_slaves=True)
        await asyncio.gather(*(one(address) for address in addresses if self._connections.is_open(address)))

    async def _beat_for_ever(self) -> None:
        pause_s = FIRST_AFTER_S
        while True:
            await asyncio.sleep(pause_s)
            pause_s = INTERVAL_S
            try:
                await self.send_now()
            except Exception:  # a consumer that cannot describe itself must not silence the others for good
                logger.exception("a round of heartbeats failed; the next comes in %g s", INTERVAL_S)
            self._forget_gone()

    def _forget_gone(self) -> None:
        known = self._routes.broker_addresses(with_slaves=True)
        self._failing &= known
        self._versions = {address: version for address, version in self._versions.items() if address in known}
