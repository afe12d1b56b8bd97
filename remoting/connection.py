"""One TCP connection: a thin asyncio shell around the frame reader.

Feeds what arrives to the wire core, hands the commands over in portions, and writes what was sent during a portion
with one write. It neither routes nor decides: a `Handler` does. Server and client use the same class; both ends may
send requests on it.

Greedy peers: a server handles one portion in one turn of the event loop, and reads on when it is through with what it
has read; in between the others have their turns. How long a turn is, and what all may keep together, is in `shares.py`.

Slow readers: when the peer lets more than `WRITE_BUFFER_BYTES_MAX` pile up, a server stops reading from it, and
handling what it has read, until it has drained: one connection's memory is bounded. One that lets even more pile up
(answers that were under way, notices), or reads nothing for `SLOW_READER_TIMEOUT_S`, is cut off. A client must go on
reading (two ends that both stop would wait for each other for ever); there, those who send wait in `drained()`.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable
from math import inf
from typing import Any, Protocol, cast

from remoting.requester import Requester
from remoting.shares import TURN_S_MIN, Shares
from remoting.wire.codes import RESPONSE_FLAG, ResponseCode
from remoting.wire.command import Command
from remoting.wire.errors import BrokenStream, FrameError
from remoting.wire.frames import FrameReader, encode_frame

logger = logging.getLogger(__name__)

# Two of the largest frames in practice: a pull answer is at most 4 MiB + 256 KiB.
WRITE_BUFFER_BYTES_MAX = 8 * 1024 * 1024
# What is sent is written at the end of the turn, or here already: a slow reader must be noticed within the turn.
FLUSH_BYTES = 1024 * 1024
# The pause, a largest frame that was being answered when it came, and room for notices; nobody reads that much later.
OWED_BYTES_MAX = 32 * 1024 * 1024
# A pull that is not answered for so long is given up by its client (`consumerTimeoutMillisWhenSuspend`).
SLOW_READER_TIMEOUT_S = 30.0
# Requests handed over at once; between two portions the answers are written and a slow reader is noticed.
REQUESTS_AT_ONCE_MAX = 64


class Handler(Protocol):
    """What an end does with what arrives. All three run on the event loop and must not block."""

    def connected(self, connection: Connection) -> None: ...

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        """Requests only, in order of arrival; responses have gone to the connection's requester.

        After the first, those that are left when `connection.is_turn_over` may be put back; they are handed over
        again later. An exception is logged and closes the connection.
        """

    def disconnected(self, connection: Connection, error: Exception | None) -> None: ...


class Connection(asyncio.Protocol):
    """Created per TCP connection. `peer` is "ip:port" or "[ip]:port"; `context` belongs to the handler."""

    def __init__(self, handler: Handler, *, stops_reading_when_full: bool = True, shares: Shares | None = None) -> None:
        self._handler = handler
        self._stops_reading_when_full = stops_reading_when_full
        self._shares = shares or Shares()
        self._reader = FrameReader()
        self._is_broken = False
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._waiting_requests: list[Command] = []
        self._is_flush_due = False
        self._is_paused = False
        self._is_reading_paused = False
        self._is_sharing = False
        self._has_more = False
        self._clock = asyncio.get_running_loop().time
        self._turn_ends_s = 0.0
        self._waiting_since_s = 0.0
        self._least_owed_bytes = 0
        self._least_owed_since_s = 0.0
        self._drained: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._closed: asyncio.Future[None] | None = None
        self.requester = Requester(self.send, self._shares)
        self.peer = "?"
        self.peer_host = ("0.0.0.0", 0)  # noqa: S104 - "not connected yet", nothing listens here
        self.last_active_s = 0.0
        self.turn_began_s = 0.0
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
        self.last_active_s = self._clock()
        if self._has_more or self._is_held_back:
            # Was under way when reading was paused.
            self._reader.feed(data, 0)
            self._shares.received(self, self._reader.kept_bytes, has_progressed=False)
        else:
            self._waiting_since_s = self.last_active_s
            self._turn(data)

    def pause_writing(self) -> None:
        self._is_paused = True
        self._least_owed_bytes, self._least_owed_since_s = self.owed_bytes, asyncio.get_running_loop().time()
        self._read_on_or_not()

    def resume_writing(self) -> None:
        self._is_paused = False
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None
        if self._stops_reading_when_full and not self._has_more:
            self._turn(b"")

    # turns

    @property
    def _is_held_back(self) -> bool:
        return self._is_paused and self._stops_reading_when_full

    def _turn(self, data: bytes) -> None:
        """Handles a portion of what has come, and sees to it that the rest gets its turn."""
        if not self.is_open:
            return
        if self._stops_reading_when_full:
            commands_max, self.turn_began_s = REQUESTS_AT_ONCE_MAX, self._clock()
            self._turn_ends_s = self.turn_began_s + self._shares.turn_s
        else:
            commands_max, self._turn_ends_s = sys.maxsize, inf
        looks_later = bool(self._waiting_requests)
        commands_count = 0 if looks_later else self._take(data, commands_max)
        self._hand_over()
        if self._is_broken and not self._waiting_requests:
            self.close()
            return
        has_more = commands_count == commands_max or bool(self._waiting_requests)
        # Came while the requests that were put back waited, and nobody has looked at it yet.
        has_more = has_more or (looks_later and self._reader.kept_bytes > 0)
        # libuv reads from one connection many times before it looks at the others, if it isn't told to stop.
        has_more = has_more or (self._turn_ends_s < inf and self._clock() - self.turn_began_s >= TURN_S_MIN)
        if self._reader.kept_bytes or self._is_sharing:
            self._is_sharing = self._reader.kept_bytes > 0
            self._shares.received(self, self._reader.kept_bytes, has_progressed=commands_count > 0)
        if has_more and not self._is_held_back:
            self._turn_later()
        self._read_on_or_not()

    def _turn_later(self) -> None:
        self._has_more = True
        self._shares.busy_count += 1
        asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._has_more = False
        self._shares.busy_count -= 1
        if not self._is_held_back:
            self._turn(b"")

    def _read_on_or_not(self) -> None:
        """What cannot be handled yet must not be read: then the peer waits, and not our memory."""
        pauses = self._is_held_back or self._has_more
        if self._stops_reading_when_full and pauses != self._is_reading_paused and self.is_open:
            assert self._transport is not None
            self._is_reading_paused = pauses
            if pauses:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _take(self, data: bytes, commands_max: int) -> int:
        """Puts the requests among the next commands to those that wait, passes responses on; how many there were."""
        try:
            commands = self._reader.feed(data, commands_max)
        except BrokenStream as error:
            logger.warning("%s: %s; closing the connection", self.peer, error)
            self._is_broken = True
            commands = error.commands
        take = self.requester.take
        self._waiting_requests += [one for one in commands if not (one.flag & RESPONSE_FLAG and take(one))]
        return len(commands)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._let_go()
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

    @property
    def owed_bytes(self) -> int:
        """Written, and not read by the peer."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    @property
    def waited_s(self) -> float:
        """How long the requests of this turn had waited for it since they were read."""
        return self.turn_began_s - self._waiting_since_s

    @property
    def waiting_count(self) -> int:
        """Requests that wait for the connection's next turn, as far as they were looked at."""
        return len(self._waiting_requests)

    @property
    def is_turn_over(self) -> bool:
        """Others wait, or the peer must read first: put back what is left."""
        return self._is_held_back or self._clock() >= self._turn_ends_s

    def put_back(self, requests: list[Command]) -> None:
        """The last of those that were handed over; they are handed over again."""
        self._waiting_requests[:0] = requests

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
        if self._is_held_back:
            raise ConnectionError(f"{self.peer} does not read what it was sent before")
        return self.requester.request(command, timeout_ms)

    def close(self) -> None:
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def cut(self, reason: str) -> None:
        """Closes at once a peer that asks too much of us."""
        if self.is_open:
            logger.warning("%s: %s; closing the connection", self.peer, reason)
            self.abort()
            self._let_go()

    def cut_if_stuck(self, now_s: float) -> None:
        """To be called now and then: cuts off a peer that has read nothing for `SLOW_READER_TIMEOUT_S`."""
        if not self._is_held_back:
            return
        owed_bytes = self.owed_bytes
        if owed_bytes < self._least_owed_bytes:
            self._least_owed_bytes, self._least_owed_since_s = owed_bytes, now_s
        elif now_s - self._least_owed_since_s >= SLOW_READER_TIMEOUT_S:
            self.cut(f"reads nothing for {SLOW_READER_TIMEOUT_S:g} s and has {owed_bytes} bytes to read")

    def _let_go(self) -> None:
        """Of all memory that the peer made us need."""
        self._reader = FrameReader()
        self._out.clear()
        self._waiting_requests.clear()
        self._shares.gone(self)

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
        """Gives waiting requests to the handler: a server one portion, a client all."""
        while self._waiting_requests and self.is_open:
            portion = self._waiting_requests[:REQUESTS_AT_ONCE_MAX]
            del self._waiting_requests[:REQUESTS_AT_ONCE_MAX]
            self._is_flush_due = True  # what the handler sends is written right below
            try:
                self._handler.requests_received(self, portion)
            except Exception:
                logger.exception("%s: handling %s failed; closing the connection", self.peer, portion[0])
                self.abort()
            self._flush()
            if self._stops_reading_when_full:
                return

    def _flush(self) -> None:
        self._is_flush_due = False
        if not self._out or self._transport is None or not self.is_open:
            return
        data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        self._out.clear()
        self._out_bytes = 0
        self._transport.write(data)
        if self._stops_reading_when_full:
            self._note_owed()

    def _note_owed(self) -> None:
        owed_bytes = self.owed_bytes
        if owed_bytes > OWED_BYTES_MAX:
            self.cut(f"has {owed_bytes} bytes to read and lets more come")
        elif self.is_open:
            self._shares.written(self, owed_bytes)
