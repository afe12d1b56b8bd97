"""Clients that mean harm, over real sockets: what they make the broker keep is bounded, and others are served."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from collections.abc import Iterator

import pytest

from broker.engine.config import BrokerConfig
from broker.engine.runtime import BrokerRuntime
from broker.engine.serving import held_pulls as held_pulls_module
from remoting.memory_budget import MemoryBudget
from remoting.server_connection import ConnectionLimits, ServerConnection
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.frames import encode_frame
from remoting.wire.headers.pull import SUBSCRIPTION_FLAG, SUSPEND_FLAG
from tests.broker.engine.test_runtime import House
from tests.support.waiting import eventually

MIB = 1024 * 1024
RECEIVED_BYTES_MAX = 4 * MIB
UNSENT_BYTES_MAX = 4 * MIB
INCOMPRESSIBLE = random.Random(1).randbytes(200_000)
# What one connection may have more, before it is noticed: an answer under way.
ONE_ANSWER_BYTES = MIB


@pytest.fixture
async def house(tmp_path):
    runtime = BrokerRuntime(BrokerConfig(store=tmp_path / "store", port=0, namesrv_port=0, flush="async"))
    runtime.server.limits = ConnectionLimits(write_buffer_bytes_max=MIB)
    runtime.server.budget = MemoryBudget(received_bytes_max=RECEIVED_BYTES_MAX, unsent_bytes_max=UNSENT_BYTES_MAX)
    await runtime.start()
    house = House(runtime)
    await house.admin.topics.create(house.broker, TopicConfig(topic_name="orders"))
    yield house
    await house.connections.close()
    await runtime.stop()


@contextlib.contextmanager
def hostile(house: House, count: int) -> Iterator[list[socket.socket]]:
    sockets = []
    try:
        for _ in range(count):
            one = socket.create_connection(("127.0.0.1", house.runtime.config.port))
            one.setblocking(False)
            sockets.append(one)
        yield sockets
    finally:
        for one in sockets:
            one.close()


def connections(house: House) -> set[ServerConnection]:
    return house.runtime.server.connections


def received_bytes(house: House) -> int:
    return sum(connection._reader.buffered_bytes for connection in connections(house))


def unsent_bytes(house: House) -> int:
    return sum(connection.unsent_bytes for connection in connections(house))


async def push(one: socket.socket, data: bytes) -> None:
    """Until it is sent, or the broker has had enough."""
    with contextlib.suppress(OSError):
        async with asyncio.timeout(60):
            await asyncio.get_running_loop().sock_sendall(one, data)


def pull(queue_id: int, wait_ms: int = 0, subscription: str = "*") -> bytes:
    flags = SUBSCRIPTION_FLAG | (SUSPEND_FLAG if wait_ms else 0)
    values = {
        "consumerGroup": "billing",
        "topic": "orders",
        "queueId": queue_id,
        "queueOffset": 0,
        "maxMsgNums": 32,
        "sysFlag": flags,
        "commitOffset": 0,
        "suspendTimeoutMillis": wait_ms,
        "subVersion": 0,
        "subscription": subscription,
    }
    fields = {name: str(value) for name, value in values.items()}
    return encode_frame(Command(code=RequestCode.PULL_MESSAGE, opaque=7, ext_fields=fields))


async def is_served(house: House) -> bool:
    return (await house.beat("others")).code == ResponseCode.SUCCESS


async def test_half_sent_requests_of_many_clients_stay_within_their_bound(house) -> None:
    half = encode_frame(Command(code=RequestCode.SEND_MESSAGE_V2, body=bytes(2 * MIB)))[: MIB + MIB // 2]
    most = 0
    with hostile(house, 12) as sockets:
        for one in sockets:
            await push(one, half)
            assert await is_served(house)
            most = max(most, received_bytes(house))
        await eventually(lambda: len(connections(house)) < 12)
        assert most <= RECEIVED_BYTES_MAX
        assert house.runtime.server.budget.received_bytes == received_bytes(house)
    await eventually(lambda: house.runtime.server.budget.received_bytes == 0)
    assert await is_served(house)


@pytest.mark.slow
async def test_answers_that_many_clients_do_not_read_stay_within_their_bound(house) -> None:
    for _ in range(8):
        await house.send("orders", INCOMPRESSIBLE)
    queue_id = next(queue_id for queue_id in range(8) if house.runtime.broker.store.max_offset("orders", queue_id))
    most = 0
    with hostile(house, 12) as sockets:
        for one in sockets:
            await push(one, pull(queue_id) * 100)
        for _ in range(50):
            assert await is_served(house)
            most = max(most, unsent_bytes(house))
        assert MIB < most <= UNSENT_BYTES_MAX + ONE_ANSWER_BYTES
    await eventually(lambda: unsent_bytes(house) == 0)
    assert await is_served(house)


async def test_pulls_with_long_expressions_are_held_within_their_bound(house, monkeypatch) -> None:
    monkeypatch.setattr(held_pulls_module, "HELD_BYTES_PER_CONNECTION_MAX", 2 * MIB)
    monkeypatch.setattr(held_pulls_module, "HELD_BYTES_MAX", 5 * MIB)
    long = "||".join(f"tag-{number}" for number in range(500))
    with hostile(house, 4) as sockets:
        for one in sockets:
            await push(one, b"".join(pull(number % 8, 60_000, long) for number in range(20)))
            assert await is_served(house)
        held = house.runtime.broker.held_pulls
        assert 0 < held._held_bytes <= 5 * MIB
    await eventually(lambda: held._held_bytes == 0 and len(held) == 0)


async def test_garbage_of_every_kind_leaves_nothing_behind(house) -> None:
    before = len(connections(house))
    for garbage in (
        b"\xff" * 100_000,
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01" * 100,
        bytes(8) * 10_000,
        b"{" * 70_000,
    ):
        with hostile(house, 3) as sockets:
            for one in sockets:
                await push(one, garbage)
            assert await is_served(house)
    await eventually(lambda: len(connections(house)) <= before + 1)
    assert received_bytes(house) == 0
