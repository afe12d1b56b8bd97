"""Websockets of the web process whose client is there and reads nothing: they end, by uvicorn itself."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
import uvicorn
from websockets.asyncio.client import ClientConnection, connect

from mqadmin.answering_sockets import AnsweringWebSocket

pytestmark = pytest.mark.slow

# Below the mark from which uvicorn keeps the application from writing.
WRITTEN = b"x" * 60_000


class Application:
    """Accepts; closes when it is told to; hears when its client is gone."""

    def __init__(self) -> None:
        self.closes = asyncio.Event()
        self.is_gone = asyncio.Event()

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        closing = asyncio.create_task(self._close(send))
        while (await receive())["type"] != "websocket.disconnect":
            pass
        self.is_gone.set()
        await closing if self.closes.is_set() else closing.cancel()

    async def _close(self, send: Any) -> None:
        await self.closes.wait()
        await send({"type": "websocket.close", "code": 4401})


@asynccontextmanager
async def served(application: Application, ping_s: float) -> AsyncIterator[tuple[uvicorn.Server, ClientConnection]]:
    """A server, and a client that takes nothing off its socket, on which something lies already."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        application,
        lifespan="off",
        log_level="warning",
        ws=AnsweringWebSocket,
        ws_ping_interval=ping_s,
        ws_ping_timeout=ping_s,
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    raw.connect(listening.getsockname())
    raw.setblocking(False)
    client = await connect("ws://localhost/", sock=raw, ping_interval=None)
    client.transport.pause_reading()
    transport = connection_of(server).transport
    while not transport.get_write_buffer_size():
        transport.write(WRITTEN)
    yield server, client
    client.transport.abort()
    server.should_exit = True
    await serving


def connection_of(server: uvicorn.Server) -> AnsweringWebSocket:
    (connection,) = server.server_state.connections
    return cast(AnsweringWebSocket, connection)


async def until_gone(application: Application, server: uvicorn.Server) -> None:
    async with asyncio.timeout(60):
        await application.is_gone.wait()
        while server.server_state.connections:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)


async def test_a_client_that_answers_no_ping_is_gone_with_what_it_did_not_read() -> None:
    application = Application()
    async with served(application, ping_s=0.2) as (server, _):
        await until_gone(application, server)


async def test_a_client_that_answers_no_close_is_gone_with_what_it_did_not_read() -> None:
    application = Application()
    async with served(application, ping_s=60) as (server, _):
        connection_of(server).close_timeout = 0.2
        application.closes.set()
        await until_gone(application, server)
