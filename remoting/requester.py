"""Pairs responses with the requests that wait for them, on one connection (RocketMQ's `responseTable`).

A request leaves the table with its response, at its time-out, or with the connection; one whose caller was cancelled
leaves it at its time-out. A late response is dropped, as in RocketMQ.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable

from remoting.memory_budget import MemoryBudget
from remoting.wire.codes import ONEWAY_FLAG, request_name
from remoting.wire.command import Command

logger = logging.getLogger(__name__)

# Requests in flight on one connection; beyond it the caller gets an error instead of memory growing.
PENDING_MAX = 65_536


# The future, its time-out, and the name of the request.
_Pending = tuple[asyncio.Future[Command], asyncio.TimerHandle, str]


class Requester:
    """`send` hands a command to the connection. `budget` bounds the requests of all connections together."""

    def __init__(
        self, send: Callable[[Command], None], budget: MemoryBudget, *, pending_max: int = PENDING_MAX
    ) -> None:
        self._send = send
        self._budget = budget
        self._pending_max = pending_max
        self._opaques = itertools.count(1)
        self._pending: dict[int, _Pending] = {}

    @property
    def pending_count(self) -> int:
        """Returns how many requests wait for their responses."""
        return len(self._pending)

    def request(self, command: Command, timeout_ms: int) -> Awaitable[Command]:
        """Gives the command an opaque of this connection, sends it, and returns an awaitable of its response.

        Raises ConnectionError with too many requests in flight, FrameError for a command over the frame limit. Awaiting
        raises TimeoutError after `timeout_ms`, or the error of `fail_all`.
        """
        if len(self._pending) >= self._pending_max or not self._budget.can_add_pending:
            raise ConnectionError(f"{self._budget.pending_count} requests wait for an answer already")
        loop = asyncio.get_running_loop()
        command.opaque = next(self._opaques) & 0x7FFFFFFF
        self._send(command)  # raises for a command that cannot be written: then nothing waits
        future: asyncio.Future[Command] = loop.create_future()
        timer = loop.call_later(timeout_ms / 1000, self._time_out, command.opaque, timeout_ms)
        self._pending[command.opaque] = (future, timer, request_name(command.code))
        self._budget.pending_count += 1
        return future

    def send_oneway(self, command: Command) -> None:
        """Sends a request that gets no response. Raises FrameError for a command over the frame limit."""
        command.opaque = next(self._opaques) & 0x7FFFFFFF
        command.flag |= ONEWAY_FLAG
        self._send(command)

    def take(self, command: Command) -> bool:
        """Returns whether `command` is a response; gives it to the request that waits for it, if one still does."""
        if not command.is_response:
            return False
        entry = self._pending.pop(command.opaque, None)
        if entry is None:
            logger.debug("late response dropped: %s", command)
            return True
        self._budget.pending_count -= 1
        future, timer, _ = entry
        timer.cancel()
        if not future.done():
            future.set_result(command)
        return True

    def fail_all(self, error: Exception) -> None:
        """Ends all waiting requests with `error`."""
        pending, self._pending = self._pending, {}
        self._budget.pending_count -= len(pending)
        for future, timer, _ in pending.values():
            timer.cancel()
            if not future.done():
                future.set_exception(error)

    def _time_out(self, opaque: int, timeout_ms: int) -> None:
        entry = self._pending.pop(opaque, None)
        if entry is None:
            return
        self._budget.pending_count -= 1
        future, _, name = entry
        if not future.done():
            future.set_exception(TimeoutError(f"no answer to {name} within {timeout_ms} ms"))
