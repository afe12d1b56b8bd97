"""Drives the schedulers of all our brokers behind a name server, from a process of its own.

One loop per broker, independent of the others. A broker that does not answer is asked again after a growing pause; one
without our scheduler (Apache's) is left alone until the next query of the name server. Where another process holds a
broker's lease, this one is its standby. Lease and agenda are the broker's; nothing of them is kept here.
"""

from __future__ import annotations

import asyncio
import logging
import re

from broker.engine.schedule.driver import Driver, LeaseAnswer, StaleEpoch, Step, StepRefused
from remoting.client.admin import Admin
from remoting.client.connections import Connections
from remoting.client.errors import BrokerRefused, ClientError
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import WireError

logger = logging.getLogger(__name__)

# How often the name server is queried for new brokers, and how often while none is known.
DISCOVERY_INTERVAL_S = 30.0
FIRST_DISCOVERY_INTERVAL_S = 1.0
# The pause before a lost broker is asked again; well under the 3 s within which it must have a driver again.
PAUSE_MIN_S = 0.1
PAUSE_MAX_S = 1.0


class RemoteLink:
    """A driver's requests to the broker at `address`."""

    def __init__(self, admin: Admin, address: str) -> None:
        self._admin = admin
        self._address = address

    async def lease(self, driver: str, epoch: int, lease_ms: int, wait_ms: int) -> LeaseAnswer:
        header, agenda = await self._admin.our_broker.scheduler_lease(
            self._address, driver, lease_ms, epoch=epoch, wait_ms=wait_ms
        )
        return LeaseAnswer(header.granted, header.epoch, header.holder, header.broker_now_ms, tuple(agenda.entries))

    async def step(self, epoch: int, step: Step) -> int:
        try:
            answer = await self._admin.our_broker.scheduler_step(
                self._address, epoch, step.kind, step.key, step.until_ms
            )
        except BrokerRefused as error:
            if error.code == ResponseCode.SCHEDULER_EPOCH_STALE:
                raise StaleEpoch(str(error)) from error
            raise StepRefused(str(error)) from error
        return answer.delivered


class Drivers:
    """Use: `async with Drivers(namesrv, name) as drivers: await drivers.run()`; cancelling ends it."""

    def __init__(
        self, name_servers: str, name: str, *, first_discovery_interval_s: float = FIRST_DISCOVERY_INTERVAL_S
    ) -> None:
        """`name_servers`: "host:port;host:port". `name` is shown as the driver, in the console and in the log."""
        self._first_discovery_interval_s = first_discovery_interval_s
        self._name_servers = [word for word in re.split(r"[;,\s]+", name_servers) if word]
        self._name = name
        self._connections = Connections()
        self._admin = Admin(self._connections)
        self._loops: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Drivers:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Closes the connections, which releases the leases: a standby takes over at once."""
        for loop in self._loops.values():
            loop.cancel()
        await asyncio.gather(*self._loops.values(), return_exceptions=True)
        await self._connections.close()

    async def run(self) -> None:
        while True:
            for address in await self._addresses():
                running = self._loops.get(address)
                if running is None or running.done():
                    self._loops[address] = asyncio.create_task(self._drive(address), name=f"drive {address}")
            await asyncio.sleep(DISCOVERY_INTERVAL_S if self._loops else self._first_discovery_interval_s)

    async def _addresses(self) -> list[str]:
        """Returns the addresses of all brokers that the name servers know."""
        addresses: dict[str, None] = {}
        for name_server in self._name_servers:
            try:
                info = await self._admin.cluster.info(name_server)
            except (ClientError, WireError) as error:
                logger.debug("name server %s: %s", name_server, error)
                continue
            for broker in info.broker_addr_table.values():
                addresses.update(dict.fromkeys(broker.broker_addrs.values()))
        return list(addresses)

    async def _drive(self, address: str) -> None:
        """Drives one broker until cancelled; returns when the broker has no scheduler."""
        driver = Driver(RemoteLink(self._admin, address), self._name)
        pause_s = PAUSE_MIN_S
        wait_ms = 0
        while True:
            try:
                wait_ms = await driver.turn(wait_ms)
                pause_s = PAUSE_MIN_S
            except BrokerRefused as error:
                if error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                    logger.info("%s has no scheduler to drive", address)
                    return
                await self._pause(address, error, pause_s)
                pause_s = min(2 * pause_s, PAUSE_MAX_S)
            except (ClientError, WireError) as error:
                driver.epoch = wait_ms = 0
                await self._pause(address, error, pause_s)
                pause_s = min(2 * pause_s, PAUSE_MAX_S)

    async def _pause(self, address: str, error: Exception, pause_s: float) -> None:
        level = logging.WARNING if pause_s == PAUSE_MIN_S else logging.DEBUG
        logger.log(level, "%s: %s; asking again", address, error)
        await asyncio.sleep(pause_s)
