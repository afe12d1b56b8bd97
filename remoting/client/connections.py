"""A client's connections: one per address, made when first needed, shared by all requests to that address.

Owns the sockets and the handling of requests that servers send to the client (`NettyRemotingClient`). Refuses to
retry: only the caller knows whether a request may be repeated. The exception is GO_AWAY, which says that nothing was
done.

A request that times out leaves the shared connection open, unless nothing at all came on it for `silent_s`: then its
peer is considered dead, and the next request connects anew.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping

from remoting.client.config import ClientConfig
from remoting.client.errors import ConnectionLost, NotConnected, RequestTimedOut
from remoting.client.single_flight import SingleFlight
from remoting.client_connection import ClientConnection
from remoting.complaints import ComplaintLog
from remoting.connecting import ConnectError, connect
from remoting.connection import Handler, close_all
from remoting.wire.codes import ResponseCode, request_name
from remoting.wire.command import Command, response

logger = logging.getLogger(__name__)

# `mqClientApiTimeout`.
REQUEST_TIMEOUT_MS = 3000
# For the output that is not written yet when a client closes.
CLOSE_GRACE_S = 1.0

Answer = Command | None
RequestHandler = Callable[[ClientConnection, Command], Answer | Awaitable[Answer]]
AddressCallback = Callable[[str], None]


class Connections:
    """`on_request`: request code → handler of requests that servers send; None returned means no response.

    `connected(address, connection)` is called before anything else is sent on a new connection,
    `connection_lost(address)` when one was lost that this client did not close. Lives on one event loop.
    """

    def __init__(
        self,
        on_request: Mapping[int, RequestHandler] | None = None,
        *,
        connected: Callable[[str, ClientConnection], None] | None = None,
        connection_lost: AddressCallback | None = None,
        config: ClientConfig | None = None,
    ) -> None:
        self.on_request: dict[int, RequestHandler] = dict(on_request or {})
        self.connected = connected
        self.connection_lost = connection_lost
        self.config = config or ClientConfig()
        self._open: dict[str, ClientConnection] = {}
        self._all: set[ClientConnection] = set()
        self._connecting: SingleFlight[str, ClientConnection] = SingleFlight()
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle_scan: asyncio.TimerHandle | None = None
        self._complaints = ComplaintLog()
        self._is_closed = False

    async def request(self, address: str, command: Command, timeout_ms: int = REQUEST_TIMEOUT_MS) -> Command:
        """Sends a request and returns the response, whatever its code; `timeout_ms` covers connecting too.

        Raises NotConnected, ConnectionLost or RequestTimedOut.
        """
        deadline_s = asyncio.get_running_loop().time() + timeout_ms / 1000
        answer = await self._request_once(address, command, timeout_ms, deadline_s)
        if answer.code == ResponseCode.GO_AWAY:
            logger.info("%s is going away; asking again on a new connection", address)
            answer = await self._request_once(address, command, timeout_ms, deadline_s)
        return answer

    async def oneway(self, address: str, command: Command, timeout_ms: int = REQUEST_TIMEOUT_MS) -> None:
        """Sends a request that gets no response.

        Raises NotConnected or RequestTimedOut when it could not be written.
        """
        deadline_s = asyncio.get_running_loop().time() + timeout_ms / 1000
        connection = await self._writable(address, command, timeout_ms, deadline_s)
        connection.requester.send_oneway(command)

    async def get(self, address: str, timeout_ms: int | None = None) -> ClientConnection:
        """Returns the open connection to `address`; connects when there is none. Raises NotConnected."""
        connection = self._open.get(address)
        if connection is not None and connection.is_open:
            return connection
        timeout_ms = timeout_ms or self.config.connect_timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._connecting.run(address, lambda: self._connect(address))
        except TimeoutError as error:
            raise NotConnected(address, f"nothing answered within {timeout_ms} ms") from error

    def is_open(self, address: str) -> bool:
        """Returns whether there is an open connection to `address`; does not connect."""
        return self.current(address) is not None

    def current(self, address: str) -> ClientConnection | None:
        """Returns the open connection to `address`, None where there is none; does not connect."""
        connection = self._open.get(address)
        return connection if connection is not None and connection.is_open else None

    async def close(self) -> None:
        """Closes all connections; requests in flight raise ConnectionLost.

        Returns when sockets and tasks have ended. A caller that is cancelled leaves no socket open either.
        """
        self._is_closed = True
        if self._idle_scan is not None:
            self._idle_scan.cancel()
        for task in self._tasks:
            task.cancel()
        try:
            await self._connecting.close()
        finally:
            await close_all(self._all, CLOSE_GRACE_S)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _request_once(self, address: str, command: Command, timeout_ms: int, deadline_s: float) -> Command:
        connection = await self._writable(address, command, timeout_ms, deadline_s)
        left_ms = _left_ms(deadline_s)
        try:
            answer = await connection.request(command, left_ms)
        except TimeoutError as error:
            self._close_if_silent(address, connection)
            raise RequestTimedOut(address, command.code, timeout_ms) from error
        except ConnectionError as error:
            if connection.is_open:
                raise NotConnected(address, str(error)) from error
            raise ConnectionLost(address, _lost(connection, command)) from error
        if answer.code == ResponseCode.GO_AWAY and self._open.get(address) is connection:
            del self._open[address]  # its other requests may still get their responses; the server closes it
        return answer

    async def _writable(self, address: str, command: Command, timeout_ms: int, deadline_s: float) -> ClientConnection:
        connection = self._open.get(address)
        if connection is None or not connection.is_open:
            connection = await self.get(address, min(_left_ms(deadline_s), self.config.connect_timeout_ms))
        if connection.is_write_paused:
            try:
                async with asyncio.timeout_at(deadline_s):
                    while connection.is_write_paused and connection.is_open:
                        await connection.drained()
            except TimeoutError as error:
                self._close_if_silent(address, connection)
                raise RequestTimedOut(address, command.code, timeout_ms) from error
        return connection

    async def _connect(self, address: str) -> ClientConnection:
        if self._is_closed:
            raise NotConnected(address, "this client was closed")
        host, port = _split(address)
        peer = _AddressHandler(self, address)
        try:
            connection = await connect(
                host,
                port,
                peer,
                self.config.connect_timeout_ms,
                complaints=self._complaints,
                write_buffer_bytes_max=self.config.write_buffer_bytes_max,
                unacknowledged_s=self.config.unacknowledged_s,
            )
        except ConnectError as error:
            raise NotConnected(address, error.reason) from error
        self._open[address] = connection
        self._schedule_idle_scan()
        return connection

    def _close_if_silent(self, address: str, connection: ClientConnection) -> None:
        if asyncio.get_running_loop().time() - connection.last_active_s >= self.config.silent_s:
            logger.warning("%s: nothing came for %.0f s; closing the connection", address, self.config.silent_s)
            connection.abort()

    # events of `_AddressHandler`

    def _add(self, address: str, connection: ClientConnection) -> None:
        self._all.add(connection)
        if self.connected is not None:
            try:
                self.connected(address, connection)
            except Exception:  # the connection itself is good, and others wait for it
                logger.exception("%s: greeting a new connection failed", address)

    def _remove(self, address: str, connection: ClientConnection) -> None:
        self._all.discard(connection)
        if self._open.get(address) is connection:
            del self._open[address]
            if self.connection_lost is not None and not self._is_closed:
                self.connection_lost(address)

    def _handle(self, connection: ClientConnection, request: Command) -> None:
        handler = self.on_request.get(request.code)
        if handler is None:
            remark = f" request type {request.code} not supported"
            _reply(connection, request, response(request, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark))
            return
        try:
            answer = handler(connection, request)
        except Exception as error:
            logger.exception("%s: handling %s failed", connection.peer, request)
            answer = response(request, ResponseCode.SYSTEM_ERROR, repr(error))
        if inspect.isawaitable(answer):
            self._start(connection, request, answer)
        else:
            _reply(connection, request, answer)

    def _start(self, connection: ClientConnection, request: Command, answer: Awaitable[Answer]) -> None:
        if len(self._tasks) >= self.config.handler_tasks_max:
            if inspect.iscoroutine(answer):
                answer.close()
            remark = f"{self.config.handler_tasks_max} requests are being handled already"
            _reply(connection, request, response(request, ResponseCode.SYSTEM_BUSY, remark))
            return
        task = asyncio.ensure_future(_reply_later(connection, request, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # idle connections

    def _schedule_idle_scan(self) -> None:
        if self._idle_scan is None and not self._is_closed:
            loop = asyncio.get_running_loop()
            self._idle_scan = loop.call_later(self.config.idle_scan_interval_s, self._close_idle)

    def _close_idle(self) -> None:
        self._idle_scan = None
        now_s = asyncio.get_running_loop().time()
        for connection in list(self._all):
            if now_s - connection.last_active_s > self.config.idle_close_s and connection.requester.pending_count == 0:
                self._open = {address: one for address, one in self._open.items() if one is not connection}
                connection.close()
        self._complaints.report_left_out()
        if self._all:
            self._schedule_idle_scan()


class _AddressHandler(Handler[ClientConnection]):
    """The handler of one connection; passes its events on with the address it was requested by."""

    def __init__(self, connections: Connections, address: str) -> None:
        self._connections = connections
        self._address = address

    def connected(self, connection: ClientConnection) -> None:
        self._connections._add(self._address, connection)

    def requests_received(self, connection: ClientConnection, requests: list[Command]) -> None:
        for request in requests:
            self._connections._handle(connection, request)

    def disconnected(self, connection: ClientConnection, error: Exception | None) -> None:  # noqa: ARG002
        self._connections._remove(self._address, connection)


async def _reply_later(connection: ClientConnection, request: Command, answer: Awaitable[Answer]) -> None:
    try:
        reply = await answer
    except Exception as error:
        logger.exception("%s: handling %s failed", connection.peer, request)
        reply = response(request, ResponseCode.SYSTEM_ERROR, repr(error))
    _reply(connection, request, reply)


def _reply(connection: ClientConnection, request: Command, answer: Answer) -> None:
    if answer is not None and not request.is_oneway:
        connection.send(answer)


def _lost(connection: ClientConnection, command: Command) -> str:
    waiting = f"lost while waiting for the answer to {_name(command)}"
    if not connection.stream_fault:
        return waiting
    return f"{waiting}: what came is not RocketMQ's ({connection.stream_fault}); see what listens at this address"


def _left_ms(deadline_s: float) -> int:
    return max(1, round((deadline_s - asyncio.get_running_loop().time()) * 1000))


def _name(command: Command) -> str:
    return request_name(command.code)


def _split(address: str) -> tuple[str, int]:
    """Returns host and port. Raises NotConnected for a text that is no "host:port"."""
    host, separator, port = address.strip().rpartition(":")
    if not separator or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise NotConnected(address, "not of the form host:port")
    return host.strip("[]"), int(port)
