"""Traces what listeners make of messages (Java `ConsumeMessageTraceHookImpl`).

Around each call: a record before it, so that one that never returns is seen, too, and one after it with its cost and
outcome; the two have one request id. Messages that say TRACE_ON=false are left out, as are those that never reach a
listener.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from consumer.engine.clock import Clock
from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.outcomes import Later
from remoting.wire.bodies.trace import SUB_AFTER, SUB_BEFORE, ConsumeOutcome, TraceRecord
from remoting.wire.properties import Property

# Takes records on the event loop; never raises.
Record = Callable[..., None]


@dataclass(frozen=True, slots=True)
class _End:
    """How a call ended, for the record of each of its messages: `cost_ms` is a message's share."""

    cost_ms: int
    outcome: ConsumeOutcome
    is_success: bool


class ConsumeTrace:
    """`group` as its members call it, without a namespace. Made on the running loop, where records go to `record`."""

    def __init__(self, *, group: str, client_id: str, record: Record, clock: Clock, timeout_ms: int) -> None:
        self._group = group
        self._client_host = client_id
        self._record = record
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._loop = asyncio.get_running_loop()

    def around(self, listeners: Mapping[str, Listener]) -> dict[str, Listener]:
        """Returns the listeners with records around their calls."""
        return {topic: replace(one, call=self._traced(one)) for topic, one in listeners.items()}

    def _traced(self, listener: Listener) -> Callable[[Any], Any]:
        async def call_async(argument: Message | list[Message]) -> Any:
            after = self._before(argument)
            try:
                result = await listener.call(argument)
            except BaseException as error:
                after(error)
                raise
            after(None)
            return result

        def call_sync(argument: Message | list[Message]) -> Any:
            after = self._before(argument)
            try:
                result = listener.call(argument)
            except BaseException as error:
                after(error)
                raise
            after(None)
            return result

        return call_async if listener.is_async else call_sync

    def _before(self, argument: Message | list[Message]) -> Callable[[BaseException | None], None]:
        """Records that a call begins; returns what records its end."""
        messages = argument if isinstance(argument, list) else [argument]
        traced = [message for message in messages if message.properties.get(Property.TRACE_ON) != "false"]
        request_id, began_s = secrets.token_hex(16).upper(), time.perf_counter()
        self._send([self._begun(message, request_id) for message in traced])

        def after(error: BaseException | None) -> None:
            cost_ms = round((time.perf_counter() - began_s) * 1000)
            end = _End(cost_ms // len(messages), self._outcome(cost_ms, error), is_success=error is None)
            self._send([self._ended(message, request_id, end) for message in traced])

        return after

    def _begun(self, message: Message, request_id: str) -> TraceRecord:
        return TraceRecord(
            kind=SUB_BEFORE,
            timestamp_ms=self._clock(),
            region_id=message.properties.get(Property.MSG_REGION),
            group=self._group,
            request_id=request_id,
            message_id=message.id,
            retry_times=message.reconsume_times,
            keys=" ".join(message.keys),
            client_host=self._client_host,
        )

    def _ended(self, message: Message, request_id: str, end: _End) -> TraceRecord:
        return TraceRecord(
            kind=SUB_AFTER,
            request_id=request_id,
            message_id=message.id,
            cost_ms=end.cost_ms,
            is_success=end.is_success,
            keys=" ".join(message.keys),
            context_code=end.outcome,
            timestamp_ms=self._clock(),
            group=self._group,
        )

    def _outcome(self, cost_ms: int, error: BaseException | None) -> ConsumeOutcome:
        """Returns Java's word for the whole call: TIME_OUT says nothing about whether it succeeded."""
        if error is not None and not isinstance(error, Later):
            return ConsumeOutcome.EXCEPTION
        if cost_ms >= self._timeout_ms:
            return ConsumeOutcome.TIME_OUT
        return ConsumeOutcome.SUCCESS if error is None else ConsumeOutcome.FAILED

    def _send(self, records: list[TraceRecord]) -> None:
        """Hands records to the event loop, from any thread."""
        if not records:
            return
        try:
            self._loop.call_soon_threadsafe(self._record, *records)
        except RuntimeError:
            return  # the loop was closed while the listener ran
