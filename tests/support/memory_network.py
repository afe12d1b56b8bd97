"""Two ends of a connection joined in memory: real connections, no socket, and a pipe that tests can hold or cut.

Bytes sent leave for the other end in the next turn of the loop, in pieces of at most `piece_bytes`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from remoting.client_connection import ClientConnection
from remoting.complaints import ComplaintLog
from remoting.connection import Connection, Handler
from remoting.memory_budget import MemoryBudget
from remoting.server_connection import ConnectionLimits, FairTurns, ServerConnection
from remoting.wire.command import Command, response


class Recorder(Handler[Connection]):
    """A handler that writes down what happens and answers nothing by itself."""

    def __init__(self) -> None:
        self.requests: list[Command] = []
        self.portions: list[int] = []
        self.connections: list[Connection] = []
        self.lost: list[Exception | None] = []

    def connected(self, connection: Connection) -> None:
        self.connections.append(connection)

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        self.requests += requests
        self.portions.append(len(requests))

    def disconnected(self, connection: Connection, error: Exception | None) -> None:
        self.lost.append(error)


class Answering(Recorder):
    """Answers every request with `body_bytes` zeros."""

    def __init__(self, body_bytes: int = 0) -> None:
        super().__init__()
        self.body_bytes = body_bytes

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        super().requests_received(connection, requests)
        for request in requests:
            if not request.is_oneway:
                connection.send(response(request, 0, body=bytes(self.body_bytes)))


class MemoryTransport(asyncio.Transport):
    """One direction's sender and the other's receiver."""

    def __init__(self, protocol: asyncio.Protocol, peer_name: tuple[str, int]) -> None:
        super().__init__({"peername": peer_name})
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._limits = (16 * 1024, 64 * 1024)
        self._is_closing = False
        self._is_lost = False
        self._is_reading = True
        self._has_paused_writer = False
        self.other: MemoryTransport | None = None
        self.in_flight = bytearray()
        self.is_held = False
        self.piece_bytes = 256 * 1024
        self.writes: list[int] = []

    # what the connection uses

    def write(self, data: Any) -> None:
        if self._is_lost:
            return
        self.writes.append(len(data))
        self.in_flight += data
        if len(self.in_flight) > self._limits[1] and not self._has_paused_writer:
            self._has_paused_writer = True
            self._protocol.pause_writing()
        self._loop.call_soon(self.deliver)

    def get_write_buffer_size(self) -> int:
        return len(self.in_flight)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        high = 64 * 1024 if high is None else high
        self._limits = (high // 4 if low is None else low, high)

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        if self.other is not None:
            self._loop.call_soon(self.other.deliver)

    def is_reading(self) -> bool:
        return self._is_reading

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True
        if not self.in_flight:
            self._loop.call_soon(self._lose, None)

    def abort(self) -> None:
        self._is_closing = True
        self.in_flight.clear()
        self._loop.call_soon(self._lose, None)

    # what tests use

    def hold(self) -> None:
        """Nothing that is sent from this end arrives until `release`."""
        self.is_held = True

    def release(self) -> None:
        self.is_held = False
        self._loop.call_soon(self.deliver)

    def cut(self) -> None:
        """The wire breaks; what was in flight is lost."""
        self.in_flight.clear()
        error = ConnectionResetError("cut by the test")
        self._loop.call_soon(self._lose, error)
        if self.other is not None:
            self._loop.call_soon(self.other._lose, error)

    def deliver(self) -> None:
        other = self.other
        if other is None or self.is_held or not other._is_reading or other._is_lost or not self.in_flight:
            return
        piece = bytes(self.in_flight[: self.piece_bytes])
        del self.in_flight[: self.piece_bytes]
        other._protocol.data_received(piece)
        if self._has_paused_writer and len(self.in_flight) <= self._limits[0]:
            self._has_paused_writer = False
            self._protocol.resume_writing()
        if self.in_flight:
            self._loop.call_soon(self.deliver)
        elif self._is_closing:
            self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        if self._is_lost:
            return
        self._is_lost = self._is_closing = True
        self._protocol.connection_lost(error)
        if self.other is not None:
            self._loop.call_soon(self.other._lose, error)


class Pipe:
    """`client` and `server` are the two connections; `to_server` and `to_client` the two directions.

    `budget`, `turns` and `complaints` are the server's, which it would share with other connections.
    """

    def __init__(
        self,
        client_handler: Handler[ClientConnection],
        server_handler: Handler[ServerConnection],
        *,
        limits: ConnectionLimits | None = None,
    ) -> None:
        limits = limits or ConnectionLimits()
        self.budget, self.turns, self.complaints = MemoryBudget(), FairTurns(), ComplaintLog()
        self.client = ClientConnection(client_handler, write_buffer_bytes_max=limits.write_buffer_bytes_max)
        self.server = ServerConnection(
            server_handler, budget=self.budget, turns=self.turns, complaints=self.complaints, limits=limits
        )
        self.to_server = MemoryTransport(self.client, ("127.0.0.1", 10911))
        self.to_client = MemoryTransport(self.server, ("127.0.0.1", 50000))
        self.to_server.other, self.to_client.other = self.to_client, self.to_server
        self.server.connection_made(self.to_client)
        self.client.connection_made(self.to_server)
