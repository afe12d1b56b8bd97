"""A driver in a process of its own against a broker over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from broker.driving import Drivers
from broker.engine.config import BrokerConfig
from broker.engine.runtime import BrokerRuntime
from broker.engine.serving.request_table import RequestTable
from remoting.client.admin import Admin
from remoting.client.connections import Connections
from remoting.server import Server
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.route import BrokerData, ClusterInfo
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import response
from tests.support.children import free_port
from tests.support.waiting import eventually


@contextlib.asynccontextmanager
async def broker(folder, port: int = 0, namesrv_port: int = 0) -> AsyncIterator[BrokerRuntime]:
    config = BrokerConfig(
        store=folder, port=port, namesrv_port=namesrv_port, flush="async", scheduler="celery", delay_levels="1s 2s"
    )
    runtime = BrokerRuntime(config)
    await runtime.start()
    try:
        yield runtime
    finally:
        await runtime.stop()


@contextlib.asynccontextmanager
async def driver(namesrv: str, name: str, **options: float) -> AsyncIterator[None]:
    async with Drivers(namesrv, name, **options) as drivers:
        running = asyncio.create_task(drivers.run())
        try:
            yield
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def namesrv_of(runtime: BrokerRuntime) -> str:
    return f"127.0.0.1:{runtime.config.namesrv_port}"


class Asking:
    """Who drives a broker, asked over a connection of its own."""

    def __init__(self) -> None:
        self._connections = Connections()
        self._admin = Admin(self._connections)

    async def driver_of(self, runtime: BrokerRuntime) -> str:
        _, body = await self._admin.our_broker.watch(runtime.config.address)
        return body.scheduler.driver if body.scheduler is not None else ""

    async def close(self) -> None:
        await self._connections.close()


@pytest.fixture
async def asking():
    asking = Asking()
    yield asking
    await asking.close()


async def drives(asking: Asking, runtime: BrokerRuntime, name: str) -> None:
    async def is_so() -> bool:
        return await asking.driver_of(runtime) == name

    await eventually(is_so, what=f"{name!r} drives")


async def test_driver_finds_the_broker_behind_the_name_server_and_drives_it(tmp_path, asking):
    async with broker(tmp_path / "store") as runtime, driver(namesrv_of(runtime), "one"):
        await drives(asking, runtime, "one")


async def test_driver_waits_for_a_name_server_that_is_not_there_yet(tmp_path, asking, caplog):
    caplog.set_level("DEBUG")
    port = free_port()
    async with driver(f"127.0.0.1:{port}", "one", first_discovery_interval_s=0.05):
        await eventually(lambda: f"name server 127.0.0.1:{port}" in caplog.text)
        async with broker(tmp_path / "store", namesrv_port=port) as runtime:
            await drives(asking, runtime, "one")


async def test_standby_takes_over_at_once_when_the_driver_closes(tmp_path, asking, monkeypatch):
    monkeypatch.setattr("broker.engine.schedule.driver.LEASE_MS", 30_000)
    async with broker(tmp_path / "store") as runtime:
        async with driver(namesrv_of(runtime), "one"):
            await drives(asking, runtime, "one")
            standby = driver(namesrv_of(runtime), "two")
            await standby.__aenter__()
            await asyncio.sleep(0.1)
            assert await asking.driver_of(runtime) == "one"
        await drives(asking, runtime, "two")
        await standby.__aexit__(None, None, None)
        await drives(asking, runtime, "")


async def test_driver_comes_back_to_a_broker_that_was_restarted(tmp_path, asking):
    async with broker(tmp_path / "store") as runtime:
        ports = {"port": runtime.config.port, "namesrv_port": runtime.config.namesrv_port}
        drivers = driver(namesrv_of(runtime), "one")
        await drivers.__aenter__()
        await drives(asking, runtime, "one")
    async with broker(tmp_path / "store", **ports) as again:
        await drives(asking, again, "one")
        await drivers.__aexit__(None, None, None)


async def test_driver_leaves_a_broker_alone_that_has_no_scheduler(tmp_path, asking, caplog):
    caplog.set_level("INFO")
    names, theirs = RequestTable("name server"), RequestTable("Apache")
    name_server, apache = Server(names), Server(theirs)
    apache_port = await apache.listen("127.0.0.1", 0)
    data = BrokerData(cluster="c", broker_name="a", broker_addrs={"0": f"127.0.0.1:{apache_port}"})
    body = write_body(ClusterInfo(broker_addr_table={"a": data}))
    names.fill(
        {
            RequestCode.GET_BROKER_CLUSTER_INFO: lambda request: response(
                request.command, ResponseCode.SUCCESS, body=body
            )
        }
    )
    namesrv_port = await name_server.listen("127.0.0.1", 0)

    async with driver(f"127.0.0.1:{namesrv_port}", "one"):
        await eventually(lambda: "has no scheduler to drive" in caplog.text)
    await name_server.close()
    await apache.close()
