"""A server's end of a connection: bounded in the time and the memory that its peer can make it use.

Turns: a connection handles one portion of requests in one turn of the event loop, for a bounded time, and the socket
is not read again until all that was read is handled; in between the other connections have their turns.

Slow readers: when more than the write buffer's limit is unsent, the connection stops reading the socket and handling
what it has read until the peer has read. One that lets even more become unsent (answers that were under way,
notifications), or reads nothing for `slow_reader_timeout_s`, is cut.

What all connections of a server may keep together is in `memory_budget.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass

from remoting.complaints import ComplaintLog
from remoting.connection import REQUESTS_AT_ONCE_MAX, WRITE_BUFFER_BYTES_MAX, Connection, Handler
from remoting.memory_budget import MemoryBudget
from remoting.wire.command import Command

# The write buffer's limit, a largest frame that was being answered when it was reached, and room for notifications; a
# peer that is further behind does not catch up.
UNSENT_BYTES_MAX = 32 * 1024 * 1024
# A pull that is not answered for so long is given up by its client (`consumerTimeoutMillisWhenSuspend`).
SLOW_READER_TIMEOUT_S = 30.0
# One round of the turns of all connections that have more to do than one turn takes: the longest that a request of
# another connection waits for them.
ROUND_S = 0.02
# One connection's turn. Below the lower bound the switching would cost more than the work.
TURN_S_MAX = 0.005
TURN_S_MIN = 0.001


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Bounds of each connection of a server; the reasons stand with the constants."""

    write_buffer_bytes_max: int = WRITE_BUFFER_BYTES_MAX
    unsent_bytes_max: int = UNSENT_BYTES_MAX
    slow_reader_timeout_s: float = SLOW_READER_TIMEOUT_S
    requests_per_turn_max: int = REQUESTS_AT_ONCE_MAX


class FairTurns:
    """Shares the event loop's time between the connections of a server that have more to do than one turn takes.

    `busy_count`: how many these are.
    """

    def __init__(self) -> None:
        self.busy_count = 0

    @property
    def turn_s(self) -> float:
        """Returns how long one connection may be served before the others have their turns."""
        return max(TURN_S_MIN, min(TURN_S_MAX, ROUND_S / max(1, self.busy_count)))


class ServerConnection(Connection):
    """`turn_began_s`: when the present turn began, in seconds of the event loop's clock."""

    def __init__(
        self,
        handler: Handler[ServerConnection],
        *,
        budget: MemoryBudget | None = None,
        turns: FairTurns | None = None,
        complaints: ComplaintLog | None = None,
        limits: ConnectionLimits = ConnectionLimits(),
    ) -> None:
        self._budget = budget or MemoryBudget()
        super().__init__(handler, self._budget, complaints or ComplaintLog(), limits.write_buffer_bytes_max)
        self._turns = turns or FairTurns()
        self._limits = limits
        # Received, not handled yet: the handler put them back, or the peer must read first.
        self._waiting_requests: list[Command] = []
        self._waiting_since_s = 0.0
        self._turn_ends_s = 0.0
        self._is_turn_scheduled = False
        self._is_read_paused = False
        self._has_reported_received = False
        self._unsent_least_bytes = 0
        self._unsent_least_since_s = 0.0
        self.turn_began_s = 0.0

    # asyncio.Protocol

    def data_received(self, data: bytes) -> None:
        self.last_active_s = self._clock()
        if self._is_turn_scheduled or self._is_write_paused:
            # Was under way when reading was paused.
            self._read(data, 0)
            self._budget.set_received(self, self._reader.buffered_bytes, has_progressed=False)
        else:
            self._waiting_since_s = self.last_active_s
            self._run_turn(data)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unsent_least_bytes, self._unsent_least_since_s = self.unsent_bytes, self._clock()
        self._pause_or_resume_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self._is_turn_scheduled:
            self._run_turn(b"")

    # what handlers use

    @property
    def waited_s(self) -> float:
        """Returns how long the requests of this turn have waited for it since they were received."""
        return self.turn_began_s - self._waiting_since_s

    @property
    def waiting_count(self) -> int:
        """Returns how many requests were decoded and wait for the connection's next turn."""
        return len(self._waiting_requests)

    @property
    def is_turn_over(self) -> bool:
        """Returns whether the turn's time is up, or the peer must read first: `put_back` what is left.

        At least the first request of a portion must be handled.
        """
        return self._is_write_paused or self._clock() >= self._turn_ends_s

    def put_back(self, requests: list[Command]) -> None:
        """Takes back the last of the requests that were handed over; the next turn begins with them."""
        self._waiting_requests[:0] = requests

    def request(self, command: Command, timeout_ms: int) -> Awaitable[Command]:
        """Sends a request as `Connection.request` does; raises ConnectionError, too, while writing is paused."""
        if self._is_write_paused and self.is_open:
            raise ConnectionError(f"{self.peer} does not read what it was sent before")
        return super().request(command, timeout_ms)

    def cut(self, reason: str) -> None:
        """Closes at once the connection of a peer that makes the server keep too much."""
        if self.is_open:
            self._complain("cut", f"{reason}; closing the connection")
            self.abort()
            self._release_buffers()

    def cut_if_stuck(self, now_s: float) -> None:
        """Cuts the connection when its peer has read nothing for `slow_reader_timeout_s`. To be called now and then."""
        if not self._is_write_paused:
            return
        unsent_bytes, timeout_s = self.unsent_bytes, self._limits.slow_reader_timeout_s
        if unsent_bytes < self._unsent_least_bytes:
            self._unsent_least_bytes, self._unsent_least_since_s = unsent_bytes, now_s
        elif now_s - self._unsent_least_since_s >= timeout_s:
            self.cut(f"reads nothing for {timeout_s:g} s and has {unsent_bytes} bytes to read")

    # turns

    def _run_turn(self, data: bytes) -> None:
        """Handles one portion of what has come, and schedules a turn for the rest.

        `data` is empty while requests wait: what comes then stays in the reader.
        """
        if not self.is_open:
            return
        self.turn_began_s = began_s = self._clock()
        self._turn_ends_s = began_s + self._turns.turn_s
        had_waiting = bool(self._waiting_requests)
        commands_count = 0 if had_waiting else self._read_portion(data)
        self._hand_over_portion()
        if self._is_stream_broken and not self._waiting_requests:
            self.close()
            return
        buffered_bytes = self._reader.buffered_bytes
        if buffered_bytes or self._has_reported_received:
            self._has_reported_received = buffered_bytes > 0
            self._budget.set_received(self, buffered_bytes, has_progressed=commands_count > 0)
        has_more = (
            commands_count == self._limits.requests_per_turn_max
            or bool(self._waiting_requests)
            # Came while requests waited, and was not decoded yet.
            or (had_waiting and buffered_bytes > 0)
            # libuv reads one connection many times before it looks at the others, unless reading is paused.
            or self._clock() - began_s >= TURN_S_MIN
        )
        if has_more and not self._is_write_paused:
            self._schedule_turn()
        self._pause_or_resume_reading()

    def _read_portion(self, data: bytes) -> int:
        """Decodes one portion and returns how many commands it had; its requests wait to be handed over."""
        commands = self._read(data, self._limits.requests_per_turn_max)
        self._waiting_requests = self._requests_in(commands)
        return len(commands)

    def _hand_over_portion(self) -> None:
        portion = self._waiting_requests
        if portion and self.is_open:
            self._waiting_requests = []
            self._hand_over(portion)

    def _schedule_turn(self) -> None:
        self._is_turn_scheduled = True
        self._turns.busy_count += 1
        asyncio.get_running_loop().call_soon(self._run_scheduled_turn)

    def _run_scheduled_turn(self) -> None:
        self._is_turn_scheduled = False
        self._turns.busy_count -= 1
        if not self._is_write_paused:
            self._run_turn(b"")

    def _pause_or_resume_reading(self) -> None:
        """Reads the socket only when what comes can be handled: the peer waits then, and our memory stays bounded."""
        pauses = self._is_write_paused or self._is_turn_scheduled
        if pauses != self._is_read_paused and self.is_open:
            assert self._transport is not None
            self._is_read_paused = pauses
            if pauses:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    # memory

    def _after_write(self) -> None:
        unsent_bytes = self.unsent_bytes
        if unsent_bytes > self._limits.unsent_bytes_max:
            self.cut(f"has {unsent_bytes} bytes to read and lets more come")
        elif self.is_open:
            self._budget.set_unsent(self, unsent_bytes)

    def _release_buffers(self) -> None:
        super()._release_buffers()
        self._waiting_requests = []
        self._budget.forget(self)
