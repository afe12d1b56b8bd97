"""One TCP connection: a thin asyncio shell around the frame reader.

Feeds what arrives to the wire core, hands all commands of one read over together, and writes what was sent during
that read with one write. It neither routes nor decides: a `Handler` does. Server and client use the same class; both
ends may send requests on it.

Slow readers: when the peer lets more than `WRITE_BUFFER_BYTES_MAX` pile up, a server stops reading from it, and
handling what it has read, until it has drained: one connection's memory is bounded. A client must go on reading (two
ends that both stop would wait for each other for ever); there, those who send wait in `drained()`.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Awaitable
from typing import Any, Protocol, cast

from remoting.requester import Requester
from remoting.wire.codes import RESPONSE_FLAG, ResponseCode
from remoting.wire.command import Command
from remoting.wire.errors import BrokenStream, FrameError
from remoting.wire.frames import FrameReader, encode_frame

logger = logging.getLogger(__name__)

# Two of the largest frames in practice: a pull answer is at most 4 MiB + 256 KiB.
WRITE_BUFFER_BYTES_MAX = 8 * 1024 * 1024
# What is sent is written at the end of the turn, or here already: a slow reader must be noticed within the turn.
FLUSH_BYTES = 1024 * 1024
# Requests handed over at once; between two portions the answers are written and a slow reader is noticed.
REQUESTS_AT_ONCE_MAX = 64


class ConnectError(ConnectionError):
    """No connection could be made to `address`; `reason` in a few words."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"cannot connect to {address}: {reason}")
        self.address = address
        self.reason = reason


class Handler(Protocol):
    """What an end does with what arrives. All three run on the event loop and must not block."""

    def connected(self, connection: Connection) -> None: ...

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        """Requests only, in order of arrival; responses have gone to the connection's requester.

        An exception is logged and closes the connection.
        """

    def disconnected(self, connection: Connection, error: Exception | None) -> None: ...


class Connection(asyncio.Protocol):
    """Created per TCP connection. `peer` is "ip:port" or "[ip]:port"; `context` belongs to the handler."""

    def __init__(self, handler: Handler, *, stops_reading_when_full: bool = True) -> None:
        self._handler = handler
        self._stops_reading_when_full = stops_reading_when_full
        self._reader = FrameReader()
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._waiting_requests: list[Command] = []
        self._is_flush_due = False
        self._is_paused = False
        self._drained: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._closed: asyncio.Future[None] | None = None
        self.requester = Requester(self.send)
        self.peer = "?"
        self.peer_host = ("0.0.0.0", 0)  # noqa: S104 - "not connected yet", nothing listens here
        self.last_active_s = 0.0
        self.context: dict[str, Any] = {}

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES_MAX)
        loop = asyncio.get_running_loop()
        self._closed = loop.create_future()
        self.last_active_s = loop.time()
        host = transport.get_extra_info("peername") or ("unix", 0)
        self.peer_host = (host[0], host[1])
        self.peer = f"[{host[0]}]:{host[1]}" if ":" in host[0] else f"{host[0]}:{host[1]}"
        self._handler.connected(self)

    def data_received(self, data: bytes) -> None:
        self.last_active_s = asyncio.get_running_loop().time()
        try:
            commands = self._reader.feed(data)
        except BrokenStream as error:
            logger.warning("%s: %s; closing the connection", self.peer, error)
            self._take(error.commands)
            self.close()
            return
        self._take(commands)

    def _take(self, commands: list[Command]) -> None:
        take = self.requester.take
        requests = [command for command in commands if not (command.flag & RESPONSE_FLAG and take(command))]
        if requests:
            self._waiting_requests += requests
            self._hand_over()

    def pause_writing(self) -> None:
        self._is_paused = True
        if self._stops_reading_when_full and self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._is_paused = False
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None
        if self._stops_reading_when_full and self._transport is not None:
            self._hand_over()
            if not self._is_paused and self._transport is not None:
                self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._out.clear()
        self._waiting_requests.clear()
        self.requester.fail_all(ConnectionError(f"connection to {self.peer} was closed"))
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None
        if self._closed is not None and not self._closed.done():
            self._closed.set_result(None)
        self._handler.disconnected(self, exc)

    # what handlers and clients use

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_write_paused(self) -> bool:
        """The peer does not read: hold back what can wait."""
        return self._is_paused

    def send(self, command: Command) -> None:
        """Queues a command; it leaves with the others sent in this turn of the loop. Dropped when closed.

        Raises FrameError for a request that cannot be written; an answer that cannot becomes a SYSTEM_ERROR.
        """
        if not self.is_open:
            return
        frame = self._encode(command)
        self._out.append(frame)
        self._out_bytes += len(frame)
        if self._out_bytes > FLUSH_BYTES:
            self._flush()
        elif not self._is_flush_due:
            self._is_flush_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _encode(self, command: Command) -> bytes:
        try:
            return encode_frame(command)
        except FrameError as error:
            if not command.is_response:
                raise
            logger.error("%s: %s cannot be written: %s", self.peer, command, error)
            refusal = Command(code=ResponseCode.SYSTEM_ERROR, opaque=command.opaque, flag=command.flag)
            refusal.remark = f"the answer cannot be written: {error}"
            return encode_frame(refusal)

    async def drained(self) -> None:
        """Returns when the peer has read enough for more to be sent, or is gone."""
        if self._is_paused and self._transport is not None:
            if self._drained is None:
                self._drained = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drained)

    def request(self, command: Command, timeout_ms: int) -> Awaitable[Command]:
        """Sends at once; awaiting gives the response. Raises ConnectionError when closed, else as `Requester.request`.

        Awaiting raises TimeoutError after `timeout_ms`, ConnectionError when the connection is lost.
        """
        if not self.is_open:
            raise ConnectionError(f"connection to {self.peer} is closed")
        return self.requester.request(command, timeout_ms)

    def close(self) -> None:
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def closed_within(self, grace_s: float) -> None:
        """Closes; a peer that does not read what is still to be written has `grace_s`."""
        self.close()
        try:
            async with asyncio.timeout(grace_s):
                await self.wait_closed()
        except TimeoutError:
            self.abort()
            await self.wait_closed()

    async def wait_closed(self) -> None:
        if self._closed is not None:
            await asyncio.shield(self._closed)

    def _hand_over(self) -> None:
        """Gives waiting requests to the handler, portion by portion, as long as the peer reads the answers."""
        while self._waiting_requests and self.is_open and not (self._stops_reading_when_full and self._is_paused):
            portion = self._waiting_requests[:REQUESTS_AT_ONCE_MAX]
            del self._waiting_requests[:REQUESTS_AT_ONCE_MAX]
            self._is_flush_due = True  # what the handler sends is written right below
            try:
                self._handler.requests_received(self, portion)
            except Exception:
                logger.exception("%s: handling %s failed; closing the connection", self.peer, portion[0])
                self.abort()
            self._flush()

    def _flush(self) -> None:
        self._is_flush_due = False
        if self._out and self._transport is not None and self.is_open:
            data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
            self._out.clear()
            self._out_bytes = 0
            self._transport.write(data)


async def connect(
    host: str,
    port: int,
    handler: Handler,
    timeout_ms: int,
    *,
    stops_reading_when_full: bool = True,
) -> Connection:
    """Raises ConnectError."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            _, connection = await loop.create_connection(
                lambda: Connection(handler, stops_reading_when_full=stops_reading_when_full), host, port
            )
    except TimeoutError as error:
        raise ConnectError(f"{host}:{port}", f"nothing answered within {timeout_ms} ms") from error
    except OSError as error:
        raise ConnectError(f"{host}:{port}", _reason(error)) from error
    return connection


def _reason(error: OSError) -> str:
    """ "Connection refused", without asyncio's wrapping."""
    if error.errno is not None and error.errno in errno.errorcode and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return error.strerror or str(error)
