"""Consumes one message because an operator wants it (Java `consumeMessageDirectly`).

The listener gets it as always; nothing else follows: no offset moves, nothing is retried, no process queue knows of it.
It runs beside the workers, so that it comes at once also while all of them are busy.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping

from consumer.engine.clock import Clock
from consumer.engine.listener_call import ListenerCall, make_calls
from consumer.engine.listening import Listener, call_async, call_sync, is_of_listener
from consumer.engine.outcomes import Later
from consumer.engine.process_queue import CachedMessage, ProcessQueue
from remoting.wire.bodies.consume_directly import ConsumeDirectlyResult
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.error_text import error_text
from remoting.wire.stored_message import StoredMessage

# Messages consumed at once in this way; a listener may hang in each.
DIRECTLY_MAX = 4


class TooManyDirectly(Exception):
    """So many messages are consumed directly that a further one has to wait for its turn."""


class DirectConsumption:
    """`at_thread_end` runs in each thread that called a sync listener."""

    def __init__(
        self,
        listeners: Mapping[str, Listener],
        clock: Clock,
        *,
        is_orderly: bool = False,
        at_thread_end: Callable[[], None] | None = None,
    ) -> None:
        self._listeners = listeners
        self._clock = clock
        self._is_orderly = is_orderly
        self._at_thread_end = at_thread_end
        self._running_count = 0

    async def consume(self, stored: StoredMessage, broker_name: str) -> ConsumeDirectlyResult:
        """Returns what the listener made of it; one that takes batches gets a batch of one. Raises TooManyDirectly."""
        if self._running_count >= DIRECTLY_MAX:
            raise TooManyDirectly(f"{DIRECTLY_MAX} messages are consumed directly now: try again when they have ended")
        began_s = time.perf_counter()
        queue = MessageQueue(stored.topic, broker_name, stored.queue_id)
        error = await self._call(make_calls([CachedMessage(ProcessQueue(queue, 0), stored)], self._listeners)[0])
        return ConsumeDirectlyResult(
            order=self._is_orderly,
            consume_result=_result(error),
            remark=None if error is None else f"{type(error).__name__}: {error_text(error)}",
            spent_time_mills=round((time.perf_counter() - began_s) * 1000),
        )

    async def _call(self, call: ListenerCall) -> BaseException | None:
        """Returns what the listener raised."""
        if call.listener is not None and not call.listener.is_async:
            return await self._call_in_thread(call)
        self._running_count += 1
        try:
            await call_async(*call.begin(self._clock()))
        except BaseException as error:
            if not is_of_listener(error):
                raise
            return error
        finally:
            self._running_count -= 1
        return None

    async def _call_in_thread(self, call: ListenerCall) -> BaseException | None:
        """In a daemon thread: a listener that never returns must not keep the process alive."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[BaseException | None] = loop.create_future()

        def deliver(error: BaseException | None) -> None:
            self._running_count -= 1
            if not ended.done():
                ended.set_result(error)

        def work() -> None:
            error: BaseException | None = None
            try:
                call_sync(*call.begin(self._clock()))
            except BaseException as raised:  # SystemExit in a listener ends neither thread nor process
                error = raised
            finally:
                if self._at_thread_end is not None:
                    self._at_thread_end()
            try:
                loop.call_soon_threadsafe(deliver, error)
            except RuntimeError:
                return  # the loop was closed while the listener hung

        self._running_count += 1  # until it ends, also when nobody waits for it any more
        threading.Thread(target=work, name="consume directly", daemon=True).start()
        return await ended


def _result(error: BaseException | None) -> str:
    if error is None:
        return "CR_SUCCESS"
    return "CR_LATER" if isinstance(error, Later) else "CR_THROW_EXCEPTION"
