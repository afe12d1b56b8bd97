"""A listening socket whose connections share one handler (RocketMQ's `NettyRemotingServer`)."""

from __future__ import annotations

import asyncio
import errno
import resource
import sys

from remoting.complaints import ComplaintLog
from remoting.connection import Handler, close_all
from remoting.memory_budget import MemoryBudget
from remoting.server_connection import ConnectionLimits, FairTurns, ServerConnection
from remoting.wire.command import Command

# RocketMQ's own accept backlog.
BACKLOG = 1024
# Both ends close a connection on which nothing came for this long.
IDLE_TIMEOUT_S = 120.0
IDLE_SCAN_INTERVAL_S = 10.0
# For answers that are still to be written when the server closes.
CLOSE_GRACE_S = 1.0
# Turns of the event loop from the accepting of a connection to its `connected`: one makes it, one tells the handler.
ACCEPT_TURNS = 2
# Share of the files that the process may have open; the rest is left for its own files.
CONNECTIONS_SHARE = 0.3


class ListenError(Exception):
    """Raised when a port cannot be listened on; the text names the address and the remedy."""


class Server(Handler[ServerConnection]):
    """Accepts connections, counts them, closes idle and stuck ones, and passes their events on to `handler`.

    Beyond `connections_max` a new connection is closed at once: descriptors for its own files must be left to the
    process. None means `connections_share` of the limit of open files.

    `budget`, `limits` and `complaints` are given to each new connection; `complaints` is public, so that the handler
    can write its own through it.
    """

    def __init__(
        self,
        handler: Handler[ServerConnection],
        *,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        idle_scan_interval_s: float = IDLE_SCAN_INTERVAL_S,
        close_grace_s: float = CLOSE_GRACE_S,
        connections_max: int | None = None,
        connections_share: float = CONNECTIONS_SHARE,
        budget: MemoryBudget | None = None,
        limits: ConnectionLimits | None = None,
        complaints: ComplaintLog | None = None,
    ) -> None:
        self._handler = handler
        self._idle_timeout_s = idle_timeout_s
        self._idle_scan_interval_s = idle_scan_interval_s
        self._close_grace_s = close_grace_s
        self._connections_max = connections_max or _connections_max(connections_share)
        self._turns = FairTurns()
        self._server: asyncio.Server | None = None
        self._idle_scan: asyncio.TimerHandle | None = None
        self.budget = budget or MemoryBudget()
        self.limits = limits or ConnectionLimits()
        self.complaints = complaints or ComplaintLog()
        self.connections: set[ServerConnection] = set()

    async def listen(self, host: str, port: int) -> int:
        """Binds, serves, and returns the port (a free one for 0). Raises ListenError."""
        bound = await self.bind(host, port)
        await self.serve()
        return bound

    async def bind(self, host: str, port: int) -> int:
        """Binds without accepting connections yet, and returns the port (a free one for 0). Raises ListenError."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                self._new_connection, host, port, backlog=BACKLOG, start_serving=False
            )
        except OSError as error:
            raise ListenError(_listen_error_text(host, port, error)) from error
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def serve(self) -> None:
        """Accepts connections from now on. `bind` comes first."""
        assert self._server is not None
        await self._server.start_serving()
        self._schedule_idle_scan()

    async def close(self) -> None:
        """Stops listening and closes all connections, those just accepted too; returns when they are closed.

        A caller that is cancelled leaves no socket open either.
        """
        if self._idle_scan is not None:
            self._idle_scan.cancel()
        try:
            if self._server is not None:
                await _stop_accepting(self._server)
        finally:
            await close_all(self.connections, self._close_grace_s)

    # Handler

    def connected(self, connection: ServerConnection) -> None:
        if len(self.connections) >= self._connections_max:
            message = "%s: closed, %d connections are open already"
            host = connection.peer_host[0]
            self.complaints.warn(host, "too many connections", message, connection.peer, len(self.connections))
            connection.abort()
            return
        self.connections.add(connection)
        self._handler.connected(connection)

    def requests_received(self, connection: ServerConnection, requests: list[Command]) -> None:
        self._handler.requests_received(connection, requests)

    def disconnected(self, connection: ServerConnection, error: Exception | None) -> None:
        if connection in self.connections:
            self.connections.remove(connection)
            self._handler.disconnected(connection, error)

    def _new_connection(self) -> ServerConnection:
        return ServerConnection(
            self, budget=self.budget, turns=self._turns, complaints=self.complaints, limits=self.limits
        )

    def _schedule_idle_scan(self) -> None:
        loop = asyncio.get_running_loop()
        self._idle_scan = loop.call_later(self._idle_scan_interval_s, self._close_idle)

    def _close_idle(self) -> None:
        now_s = asyncio.get_running_loop().time()
        for connection in list(self.connections):
            connection.cut_if_stuck(now_s)
            if now_s - connection.last_active_s > self._idle_timeout_s:
                message = "%s: nothing came for %g s; closing the connection"
                host = connection.peer_host[0]
                self.complaints.info(host, "idle", message, connection.peer, self._idle_timeout_s)
                connection.abort()
        self.complaints.report_left_out()
        self._schedule_idle_scan()


async def _stop_accepting(server: asyncio.Server) -> None:
    """Closes the server when it has made the connections that it had accepted."""
    # asyncio's server leaves a connection open for ever that it has accepted and not made yet when it closes.
    for listening in server.sockets:
        asyncio.get_running_loop().remove_reader(listening.fileno())
    try:
        await _turns(ACCEPT_TURNS)
    finally:
        server.close()
    # uvloop goes on to accept until here.
    await _turns(ACCEPT_TURNS)


async def _turns(count: int) -> None:
    """Gives the event loop `count` turns."""
    for _ in range(count):
        await asyncio.sleep(0)


def _connections_max(share: float) -> int:
    """Returns `share` of the files that the process may have open."""
    open_files_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return int(open_files_max * share) if open_files_max != resource.RLIM_INFINITY else sys.maxsize


def _listen_error_text(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is taken by another process: stop it or choose another port"
    if error.errno == errno.EACCES:
        return f"port {port} on {host} needs more rights: choose a port above 1023"
    return f"cannot listen on {host}:{port}: {error.strerror or error}"
