"""What the two ends of a TCP connection have in common: frames, the write buffer, requests that wait for answers.

A thin asyncio shell around `wire/frames.py`: makes commands of the bytes that arrive, passes responses to the
`Requester` and requests to a `Handler`, and joins what is sent in one turn of the event loop into one write. It does
not route or decide. `server_connection.py` and `client_connection.py` decide when requests are handled and when the
socket is read; both ends may send requests (RocketMQ's `NettyRemotingAbstract`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Collection
from typing import Any, Protocol, TypeVar, cast

from remoting.complaints import ComplaintLog
from remoting.memory_budget import MemoryBudget
from remoting.requester import Requester
from remoting.wire.codes import RESPONSE_FLAG, ResponseCode
from remoting.wire.command import Command
from remoting.wire.errors import BrokenStream, FrameError
from remoting.wire.frames import FrameReader, encode_frame

logger = logging.getLogger(__name__)

# Two of the largest frames in practice: a pull answer is at most 4 MiB + 256 KiB. Beyond it writing is paused.
WRITE_BUFFER_BYTES_MAX = 8 * 1024 * 1024
# What is sent is written at the end of the turn, or here already: a slow reader must be noticed within the turn.
FLUSH_BYTES = 1024 * 1024
# Requests handed over at once; between two portions the answers are written and a slow reader is noticed.
REQUESTS_AT_ONCE_MAX = 64

C_contra = TypeVar("C_contra", bound="Connection", contravariant=True)


class Handler(Protocol[C_contra]):
    """Receives what arrives on a connection. All three methods run on the event loop and must not block."""

    def connected(self, connection: C_contra) -> None:
        """Is called once, before anything else of this connection."""

    def requests_received(self, connection: C_contra, requests: list[Command]) -> None:
        """Handles requests in their order of arrival; responses have gone to the connection's requester.

        An exception is logged and closes the connection.
        """

    def disconnected(self, connection: C_contra, error: Exception | None) -> None:
        """Is called once, after everything else; `error` is None where one of the two ends closed the connection."""


class Connection(asyncio.Protocol):
    """One TCP connection; made as `ServerConnection` or `ClientConnection`.

    `peer` is "ip:port" or "[ip]:port", `peer_host` the two as a tuple. `context` is for the handler's own values.
    `last_active_s` is when bytes came last, in seconds of the event loop's clock.
    """

    def __init__(
        self, handler: Handler[Any], budget: MemoryBudget, complaints: ComplaintLog, write_buffer_bytes_max: int
    ) -> None:
        self._handler = handler
        self._complaints = complaints
        self._write_buffer_bytes_max = write_buffer_bytes_max
        self._clock = asyncio.get_running_loop().time
        self._reader = FrameReader()
        self._is_stream_broken = False
        # Why what came can't be read; "" while it can.
        self.stream_fault = ""
        # Frames that were sent in this turn of the loop and are not written yet.
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._is_flush_due = False
        self._is_write_paused = False
        self._drained: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._closed: asyncio.Future[None] | None = None
        self.requester = Requester(self.send, budget)
        self.peer = "?"
        self.peer_host = ("0.0.0.0", 0)  # noqa: S104 - "not connected yet", nothing listens here
        self.last_active_s = 0.0
        self.context: dict[str, Any] = {}

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._write_buffer_bytes_max)
        self._closed = asyncio.get_running_loop().create_future()
        self.last_active_s = self._clock()
        host = transport.get_extra_info("peername") or ("unix", 0)
        self.peer_host = (host[0], host[1])
        self.peer = f"[{host[0]}]:{host[1]}" if ":" in host[0] else f"{host[0]}:{host[1]}"
        self._handler.connected(self)

    def pause_writing(self) -> None:
        self._is_write_paused = True

    def resume_writing(self) -> None:
        self._is_write_paused = False
        self._wake_drained()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._release_buffers()
        self.requester.fail_all(ConnectionError(f"connection to {self.peer} was closed"))
        self._wake_drained()
        if self._closed is not None and not self._closed.done():
            self._closed.set_result(None)
        self._handler.disconnected(self, exc)

    # what handlers and clients use

    @property
    def is_open(self) -> bool:
        """Returns whether requests and responses can still be sent."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_write_paused(self) -> bool:
        """Returns whether the peer has not read more than the write buffer's limit: hold back what can wait."""
        return self._is_write_paused

    @property
    def unsent_bytes(self) -> int:
        """Returns the bytes that were written and that the peer has not read yet."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def send(self, command: Command) -> None:
        """Sends a command; it is written with the others that are sent in this turn of the loop. Dropped when closed.

        Raises FrameError for a request that is over the frame limit; a response that is becomes a SYSTEM_ERROR.
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

    def request(self, command: Command, timeout_ms: int) -> Awaitable[Command]:
        """Sends a request at once and returns an awaitable of its response.

        Raises ConnectionError when the connection is closed or too many requests wait, FrameError as `send`. Awaiting
        raises TimeoutError after `timeout_ms`, ConnectionError when the connection is lost.
        """
        if not self.is_open:
            raise ConnectionError(f"connection to {self.peer} is closed")
        return self.requester.request(command, timeout_ms)

    async def drained(self) -> None:
        """Returns when writing is not paused any more, or the connection is lost."""
        if self._is_write_paused and self._transport is not None:
            if self._drained is None:
                self._drained = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drained)

    def close(self) -> None:
        """Closes the connection when what was sent before is written."""
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def abort(self) -> None:
        """Closes the connection at once; what is not written yet is lost."""
        if self._transport is not None:
            self._transport.abort()

    async def closed_within(self, grace_s: float) -> None:
        """Closes the connection and waits until it is; aborts it when the peer has not read all within `grace_s`."""
        self.close()
        try:
            async with asyncio.timeout(grace_s):
                await self.wait_closed()
        except TimeoutError:
            self.abort()
            await self.wait_closed()

    async def wait_closed(self) -> None:
        """Returns when the connection is closed and the handler's `disconnected` was called."""
        if self._closed is not None:
            await asyncio.shield(self._closed)

    # what the two kinds of connection are made of

    def _read(self, data: bytes, commands_max: int) -> list[Command]:
        """Returns the next commands, at most `commands_max`; those before the place where the stream is broken."""
        try:
            return self._reader.feed(data, commands_max)
        except BrokenStream as error:
            if not self._is_stream_broken:
                self._is_stream_broken = True
                self.stream_fault = str(error)
                self._complain("broken stream", f"{error}; closing the connection")
            return error.commands

    def _requests_in(self, commands: list[Command]) -> list[Command]:
        """Returns the requests among `commands`; responses go to those who wait for them."""
        take = self.requester.take
        return [command for command in commands if not (command.flag & RESPONSE_FLAG and take(command))]

    def _hand_over(self, requests: list[Command]) -> None:
        """Gives requests to the handler and writes what it sends with one write."""
        self._is_flush_due = True
        try:
            self._handler.requests_received(self, requests)
        except Exception:
            words = "%s: handling %s failed; closing the connection"
            self._complaints.exception(self.peer_host[0], "handling failed", words, self.peer, requests[0])
            self.abort()
        self._flush()

    def _flush(self) -> None:
        self._is_flush_due = False
        if self._out and self._transport is not None and self.is_open:
            data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
            self._out.clear()
            self._out_bytes = 0
            self._transport.write(data)
            self._after_write()

    def _after_write(self) -> None:
        """Is called after each write to the socket; the server's end checks how much the peer leaves unread."""

    def _release_buffers(self) -> None:
        """Frees what was received and not handled, and what was sent and not written."""
        self._reader = FrameReader()
        self._out.clear()
        self._out_bytes = 0

    def _complain(self, kind: str, text: str) -> None:
        self._complaints.warn(self.peer_host[0], kind, "%s: %s", self.peer, text)

    def _encode(self, command: Command) -> bytes:
        try:
            return encode_frame(command)
        except FrameError as error:
            if not command.is_response:
                raise
            self._complain("answer not written", f"{command} cannot be written: {error}")
            refusal = Command(code=ResponseCode.SYSTEM_ERROR, opaque=command.opaque, flag=command.flag)
            refusal.remark = f"the answer cannot be written: {error}"
            return encode_frame(refusal)

    def _wake_drained(self) -> None:
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None


async def close_all(connections: Collection[Connection], grace_s: float) -> None:
    """Closes connections at the same time, each as `closed_within`; a caller that is cancelled aborts them.

    `connections` may change meanwhile.
    """
    try:
        await asyncio.gather(*(connection.closed_within(grace_s) for connection in connections))
    finally:
        for connection in list(connections):
            connection.abort()
