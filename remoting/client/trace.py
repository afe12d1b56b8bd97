"""Sends what a client traces of its messages to the trace topic (Java `AsyncTraceDispatcher`).

A trace must never cost a message: records wait in a bounded list and are dropped when it is full, or when a broker
does not take them; both are counted. Records leave when there are enough for one message, and after 5 s at the latest.
Each trace message has the ids and keys of its records as its own keys, by which it is found.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from dataclasses import dataclass

from remoting.client.errors import ClientError
from remoting.client.instance import ClientInstance
from remoting.client.producer import Producer
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.trace import TraceRecord, write_trace
from remoting.wire.errors import WireError
from remoting.wire.names import TRACE_TOPIC

logger = logging.getLogger(__name__)

# `TraceConstants.GROUP_NAME`.
TRACE_GROUP = "_INNER_TRACE_PRODUCER"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLimits:
    """`waiting_max`: records beyond which new ones are dropped, 1 KiB each at most of the time.

    `records_max`, `bytes_max`, `keys_chars_max`: of one trace message; Java's are 118,000 bytes and 20 records, and the
    keys must fit into a message's properties. `flush_interval_s`: how long a record waits for others.
    `send_timeout_ms`: for one trace message; `close_timeout_s`: for what is left when the client closes.
    """

    waiting_max: int = 2048
    records_max: int = 200
    bytes_max: int = 118_000
    keys_chars_max: int = 24_000
    flush_interval_s: float = 5.0
    send_timeout_ms: int = 5000
    close_timeout_s: float = 3.0


class TraceDispatcher:
    """Shares the connections of `instance`, whose owner closes it after this. Lives on one event loop."""

    def __init__(
        self, instance: ClientInstance, *, topic: str = TRACE_TOPIC, limits: TraceLimits | None = None
    ) -> None:
        self.topic = topic
        self.limits = limits or TraceLimits()
        self.dropped_count = 0
        self._producer = Producer((), TRACE_GROUP, instance=instance, timeout_ms=self.limits.send_timeout_ms)
        self._waiting: deque[TraceRecord] = deque()
        self._is_enough = asyncio.Event()
        self._is_any = asyncio.Event()
        self._complaints = ComplaintLog(logger)
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Starts sending on the running loop; what was recorded before goes, too."""
        await self._producer.start()
        self._task = asyncio.create_task(self._run(), name=f"trace to {self.topic}")

    def record(self, *records: TraceRecord) -> None:
        """Takes records to be sent soon; never waits and never raises. Call on the event loop."""
        free = max(0, self.limits.waiting_max - len(self._waiting))
        self._waiting.extend(records[:free])
        if len(records) > free:
            self._drop(len(records) - free, "more was traced than brokers took")
        self._is_any.set()
        if len(self._waiting) >= self.limits.records_max:
            self._is_enough.set()

    async def close(self) -> None:
        """Sends what is left, for `close_timeout_s` at most, and unregisters, also where it is cancelled."""
        if self._task is None:
            return
        self._is_closing = True
        self._is_any.set()
        self._is_enough.set()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.limits.close_timeout_s):
                    await self._task  # cancels it when the time is over, or when this is cancelled
        finally:
            self._task = None
            if self._waiting:
                self._drop(len(self._waiting), "the client closed")
            await self._producer.close()

    async def _run(self) -> None:
        while True:
            await self._is_any.wait()
            try:
                async with asyncio.timeout(self.limits.flush_interval_s):
                    await self._is_enough.wait()
            except TimeoutError:
                pass
            while self._waiting:
                await self._send(self._next_records())
            if self._is_closing:
                return
            self._is_any.clear()
            self._is_enough.clear()

    def _next_records(self) -> list[TraceRecord]:
        """Takes as many of the waiting records as fit into one message, at least one."""
        limits, bytes_count, keys_chars = self.limits, 0, 0
        taken: list[TraceRecord] = []
        while self._waiting and len(taken) < limits.records_max:
            record = self._waiting[0]
            bytes_count += len(write_trace([record]))
            keys_chars += len(record.message_id) + len(record.keys or "") + 2
            if taken and (bytes_count > limits.bytes_max or keys_chars > limits.keys_chars_max):
                break
            taken.append(self._waiting.popleft())
        return taken

    async def _send(self, records: list[TraceRecord]) -> None:
        keys = dict.fromkeys(
            word for record in records for word in (record.message_id, *(record.keys or "").split()) if word
        )
        try:
            await self._producer.send(self.topic, write_trace(records), keys=keys)
        except asyncio.CancelledError:
            self._drop(len(records), "the client closed")
            raise
        except (ClientError, WireError) as error:
            self._drop(len(records), str(error))
        else:
            self._complaints.resolved(self.topic, "dropped")

    def _drop(self, count: int, reason: str) -> None:
        self.dropped_count += count
        self._complaints.warn(self.topic, "dropped", "traces for topic %s are dropped: %s", self.topic, reason)
