"""Pairs responses with the requests that wait for them, on one connection (RocketMQ's `responseTable`).

A request leaves the table with its response, at its time-out, or with the connection; one whose caller was cancelled
at its time-out. A late response is dropped, as in RocketMQ.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable

from remoting.shares import Shares
from remoting.wire.codes import ONEWAY_FLAG, request_name
from remoting.wire.command import Command

logger = logging.getLogger(__name__)

# Requests in flight on one connection; beyond it the caller hears an error instead of memory growing.
PENDING_MAX = 65_536


class Requester:
    """`send` hands a command to the connection. `shares` bounds the requests of all connections together."""

    def __init__(self, send: Callable[[Command], None], shares: Shares) -> None:
        self._send = send
        self._shares = shares
        self._opaques = itertools.count(1)
        self._pending: dict[int, tuple[asyncio.Future[Command], asyncio.TimerHandle, str]] = {}

    def request(self, command: Command, timeout_ms: int) -> Awaitable[Command]:
        """Gives the command an opaque of this connection and sends it; see `Connection.request`.

        Raises ConnectionError with too many requests in flight, FrameError for a command that cannot be written.
        """
        if len(self._pending) >= PENDING_MAX or not self._shares.has_room_to_ask:
            raise ConnectionError(f"{self._shares.pending_count} requests wait for an answer already")
        loop = asyncio.get_running_loop()
        command.opaque = next(self._opaques) & 0x7FFFFFFF
        self._send(command)  # raises for a command that cannot be written: then nothing waits
        future: asyncio.Future[Command] = loop.create_future()
        timer = loop.call_later(timeout_ms / 1000, self._time_out, command.opaque, timeout_ms)
        self._pending[command.opaque] = (future, timer, request_name(command.code))
        self._shares.pending_count += 1
        return future

    def send_oneway(self, command: Command) -> None:
        command.opaque = next(self._opaques) & 0x7FFFFFFF
        command.flag |= ONEWAY_FLAG
        self._send(command)

    def take(self, command: Command) -> bool:
        """True when `command` is a response, whether or not somebody still waits for it."""
        if not command.is_response:
            return False
        entry = self._pending.pop(command.opaque, None)
        if entry is None:
            logger.debug("late response dropped: %s", command)
            return True
        self._shares.pending_count -= 1
        future, timer, _ = entry
        timer.cancel()
        if not future.done():
            future.set_result(command)
        return True

    def fail_all(self, error: Exception) -> None:
        pending, self._pending = self._pending, {}
        self._shares.pending_count -= len(pending)
        for future, timer, _ in pending.values():
            timer.cancel()
            if not future.done():
                future.set_exception(error)

    @property
    def pending_count(self) -> int:
        return len(self._pending)

    def _time_out(self, opaque: int, timeout_ms: int) -> None:
        entry = self._pending.pop(opaque, None)
        if entry is not None:
            self._shares.pending_count -= 1
        if entry is not None and not entry[0].done():
            entry[0].set_exception(TimeoutError(f"no answer to {entry[2]} within {timeout_ms} ms"))
