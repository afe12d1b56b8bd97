"""Server and connections over real loopback sockets, on both event loops that the project runs on."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from remoting.client_connection import ClientConnection
from remoting.complaints import ComplaintLog
from remoting.connecting import ConnectError, connect
from remoting.connection import Connection
from remoting.server import ListenError, Server
from remoting.server_connection import ConnectionLimits
from remoting.wire.command import Command, response
from remoting.wire.frames import encode_frame
from tests.support.memory_network import Recorder
from tests.support.waiting import cancelled_after, eventually

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    if request.param == "uvloop":
        return uvloop.run
    return lambda main: asyncio.run(main, debug=True)


class Echo(Recorder):
    """Answers each request with its own body; code 11 waits until the test answers it."""

    def __init__(self) -> None:
        super().__init__()
        self.parked: list[tuple[Connection, Command]] = []

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        super().requests_received(connection, requests)
        for request in requests:
            if request.code == 11:
                self.parked.append((connection, request))
            elif not request.is_oneway:
                connection.send(response(request, 0, body=request.body))


class Listening:
    """A server with `Echo` on a free port, and client connections to it that end with the block."""

    def __init__(self, **settings: Any) -> None:
        self.echo = Echo()
        self.server = Server(self.echo, **settings)
        self.port = 0

    async def __aenter__(self) -> Listening:
        self.port = await self.server.listen("127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.close()

    async def connect(self) -> ClientConnection:
        return await connect("127.0.0.1", self.port, Recorder(), 60_000)

    async def raw(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)


def test_requests_are_answered_and_oneways_are_not(run: Run) -> None:
    async def main() -> None:
        async with Listening() as listening:
            client = await listening.connect()
            client.requester.send_oneway(Command(code=15))
            answer = await client.request(Command(code=34, body=b"x" * 1_000_000), 60_000)
            assert len(answer.body) == 1_000_000
            assert [request.code for request in listening.echo.requests] == [15, 34]
            await client.closed_within(60)

    run(main())


@pytest.mark.parametrize(
    "stream",
    {
        "a broken header": b"\0\0\0\x06\0\0\0\x02{x",
        "a frame over the limit": b"\x7f\xff\xff\xff",
        "an unknown kind of header": b"\0\0\0\x06\x09\0\0\x02{}",
        "an unknown language number": b"\0\0\0\x1a\0\0\0\x16" + b'{"code":1,"language":99}'[:22],
        "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "TLS": b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03",
    }.values(),
    ids=["broken header", "too long", "kind", "language", "HTTP", "TLS"],
)
def test_a_stream_that_is_not_ours_is_closed_and_others_are_served_on(run: Run, stream: bytes) -> None:
    async def main() -> None:
        async with Listening() as listening:
            client = await listening.connect()
            reader, writer = await listening.raw()
            writer.write(stream)
            assert await asyncio.wait_for(reader.read(), 60) == b""
            writer.close()
            assert (await client.request(Command(code=34), 60_000)).code == 0
            await client.closed_within(60)

    run(main())


def test_a_version_from_the_future_is_served(run: Run) -> None:
    async def main() -> None:
        async with Listening() as listening:
            client = await listening.connect()
            assert (await client.request(Command(code=34, version=2_000_000_000), 60_000)).code == 0
            await client.closed_within(60)

    run(main())


def test_half_a_frame_waits_for_its_other_half(run: Run) -> None:
    async def main() -> None:
        async with Listening() as listening:
            frame = encode_frame(Command(code=34, opaque=5, body=b"hello"))
            reader, writer = await listening.raw()
            for start in range(0, len(frame), 40):
                writer.write(frame[start : start + 40])
                await writer.drain()
                await asyncio.sleep(0.002)
            length = struct.unpack(">i", await asyncio.wait_for(reader.readexactly(4), 60))[0]
            assert (await reader.readexactly(length)).endswith(b"hello")
            writer.close()

    run(main())


def test_a_connection_cut_in_the_middle_of_a_frame_leaves_nothing_behind(run: Run) -> None:
    async def main() -> None:
        async with Listening() as listening:
            _, writer = await listening.raw()
            writer.write(encode_frame(Command(code=34))[:20])
            await writer.drain()
            await eventually(lambda: listening.server.connections)
            writer.transport.abort()
            await eventually(lambda: not listening.server.connections)
            assert listening.echo.requests == []

    run(main())


@pytest.mark.slow
def test_a_slow_reader_is_served_on_when_it_reads_and_costs_bounded_memory(run: Run) -> None:
    body = bytes(100_000)
    frame = encode_frame(Command(code=34, body=body))

    async def main() -> None:
        async with Listening(limits=ConnectionLimits(write_buffer_bytes_max=4_000_000)) as listening:
            slow = socket.create_connection(("127.0.0.1", listening.port))
            slow.setblocking(False)
            loop = asyncio.get_running_loop()
            sending = asyncio.create_task(loop.sock_sendall(slow, frame * 1000))
            await eventually(lambda: any(one.is_write_paused for one in listening.server.connections))
            await asyncio.sleep(0.05)
            (connection,) = listening.server.connections
            assert len(listening.echo.requests) < 300
            assert connection.unsent_bytes < 4_000_000 + 64 * 100_200
            left = 1000 * len(encode_frame(Command(code=0, opaque=0, flag=1, body=body)))
            while left > 100_000:
                left -= len(await asyncio.wait_for(loop.sock_recv(slow, 1_000_000), 60))
            await sending
            assert len(listening.echo.requests) == 1000
            slow.close()

    run(main())


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(run: Run) -> None:
    async def main() -> None:
        async with Listening(idle_timeout_s=3600, idle_scan_interval_s=0.02) as listening:
            idle, busy = await listening.connect(), await listening.connect()
            await eventually(lambda: len(listening.server.connections) == 2)
            for _ in range(2):  # twice fifty minutes, in which only one of them asked for something
                for connection in listening.server.connections:
                    connection.last_active_s -= 3000
                assert (await busy.request(Command(code=34), 60_000)).code == 0
            await eventually(lambda: not idle.is_open)
            assert busy.is_open
            await busy.closed_within(60)

    run(main())


def test_idle_connections_of_one_host_are_logged_once_a_minute(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    now_s = 0.0
    complaints = ComplaintLog(clock=lambda: now_s)

    async def main() -> None:
        nonlocal now_s
        async with Listening(complaints=complaints, idle_timeout_s=3600, idle_scan_interval_s=0.02) as listening:
            for _ in range(5):
                await listening.connect()
            await eventually(lambda: len(listening.server.connections) == 5)
            for connection in listening.server.connections:
                connection.last_active_s -= 4000
            await eventually(lambda: not listening.server.connections)
            assert caplog.text.count("nothing came for 3600 s") == 1
            now_s = 60.0
            await eventually(lambda: "127.0.0.1, idle: 4 more in 60 s were not logged" in caplog.text)

    run(main())


def test_closing_fails_requests_in_flight_at_the_client_and_ends_every_connection(run: Run) -> None:
    async def main() -> None:
        listening = Listening()
        async with listening:
            client = await listening.connect()
            waiting = client.request(Command(code=11), 60_000)
            await eventually(lambda: listening.echo.parked)
        with pytest.raises(ConnectionError):
            await waiting
        await client.wait_closed()
        assert listening.server.connections == set()
        connection, request = listening.echo.parked[0]
        connection.send(response(request, 0))

    run(main())


@pytest.mark.parametrize("turns", range(6))
def test_closing_ends_a_connection_at_every_moment_of_its_accepting(run: Run, turns: int) -> None:
    async def main() -> None:
        listening = Listening()
        async with listening:
            one = socket.create_connection(("127.0.0.1", listening.port))
            one.setblocking(False)
            for _ in range(turns):
                await asyncio.sleep(0)
        assert listening.server.connections == set()
        try:
            assert await asyncio.get_running_loop().sock_recv(one, 1) == b""
        except ConnectionResetError:
            pass
        one.close()

    run(main())


@pytest.mark.parametrize("turns", range(1, 8))
def test_closing_that_is_cancelled_leaves_no_socket_open(run: Run, turns: int) -> None:
    async def main() -> None:
        listening = Listening()
        async with listening:
            client = await listening.connect()
            await cancelled_after(listening.server.close(), turns)
            await client.wait_closed()
            with pytest.raises(ConnectError):
                await listening.connect()

    run(main())


@pytest.mark.slow
def test_closing_does_not_wait_for_slow_readers_one_after_the_other(run: Run) -> None:
    async def main() -> None:
        listening = Listening(close_grace_s=2.0)
        async with listening:
            sockets = [socket.create_connection(("127.0.0.1", listening.port)) for _ in range(10)]
            await eventually(lambda: len(listening.server.connections) == 10)
            for connection in listening.server.connections:
                connection.send(Command(code=40, body=bytes(12_000_000)))
            # One after the other they would take 20 s.
            async with asyncio.timeout(18):
                await listening.server.close()
        for one in sockets:
            one.close()

    run(main())


def test_a_parked_request_is_answered_later_without_holding_up_others(run: Run) -> None:
    async def main() -> None:
        async with Listening() as listening:
            client = await listening.connect()
            parked = asyncio.ensure_future(client.request(Command(code=11), 60_000))
            assert (await client.request(Command(code=34), 60_000)).code == 0
            assert not parked.done()
            connection, request = listening.echo.parked[0]
            connection.send(response(request, 19))
            assert (await parked).code == 19
            await client.closed_within(60)

    run(main())


async def test_a_taken_port_is_refused_in_one_line_with_the_remedy() -> None:
    async with Listening() as listening:
        with pytest.raises(ListenError, match=f"port {listening.port} on 127.0.0.1 is taken.*choose another"):
            await Server(Recorder()).listen("127.0.0.1", listening.port)


async def test_an_address_that_is_not_this_machines_is_refused() -> None:
    with pytest.raises(ListenError, match=r"cannot listen on 198\.51\.100\.1:0"):
        await Server(Recorder()).listen("198.51.100.1", 0)


async def test_an_ipv6_peer_is_shown_with_brackets() -> None:
    echo = Echo()
    server = Server(echo)
    try:
        port = await server.listen("::1", 0)
    except ListenError as error:
        pytest.skip(f"no IPv6 here: {error}")
    client = await connect("::1", port, Recorder(), 60_000)
    await eventually(lambda: echo.connections)
    assert echo.connections[0].peer.startswith("[::1]:")
    await client.closed_within(60)
    await server.close()


def test_one_connection_too_many_is_closed_and_the_others_go_on(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with Listening(connections_max=2) as listening:
            first, second = await listening.connect(), await listening.connect()
            for _ in range(3):
                reader, writer = await listening.raw()
                with contextlib.suppress(ConnectionError):
                    assert await asyncio.wait_for(reader.read(), 60) == b""
                writer.close()
            assert (await first.request(Command(code=10, body=b"still here"), 60_000)).body == b"still here"
            assert len(listening.server.connections) == 2
            second.close()
            await eventually(lambda: len(listening.server.connections) == 1)
            third = await listening.connect()
            assert (await third.request(Command(code=10, body=b"room again"), 60_000)).body == b"room again"
            first.close()
            third.close()

    run(main())
    assert caplog.text.count("2 connections are open already") == 1


def test_streams_that_are_not_ours_are_logged_once_a_host_and_minute(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    now_s = 0.0
    complaints = ComplaintLog(clock=lambda: now_s)

    async def main() -> None:
        nonlocal now_s
        async with Listening(complaints=complaints, idle_scan_interval_s=0.01) as listening:
            for _ in range(5):
                reader, writer = await listening.raw()
                writer.write(b"GET / HTTP/1.1\r\n\r\n")
                assert await asyncio.wait_for(reader.read(), 60) == b""
                writer.close()
            assert caplog.text.count("this is HTTP") == 1
            now_s = 60.0
            await eventually(lambda: "127.0.0.1, broken stream: 4 more in 60 s were not logged" in caplog.text)

    run(main())
