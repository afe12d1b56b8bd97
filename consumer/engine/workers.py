"""Calls listeners: sync ones in threads, async ones in tasks on the event loop.

What waits here is bounded by the flow control of its queues. A worker changes no process queue: it only reads whether
it was dropped. Finished calls are handed over on the event loop, several at once where several have finished.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from consumer.engine.clock import Clock
from consumer.engine.listener_call import ListenerCall, Reported, make_calls
from consumer.engine.listening import Listener
from consumer.engine.loop_workers import LoopWorkers
from consumer.engine.process_queue import CachedMessage
from consumer.engine.thread_workers import ThreadWorkers


class Workers:
    """Up to `count` sync listeners at once, and as many async ones. Lives on the running event loop."""

    def __init__(
        self,
        count: int,
        listeners: Mapping[str, Listener],
        reported: Reported,
        clock: Clock,
        *,
        name: str,
        at_thread_end: Callable[[], None] | None = None,
    ) -> None:
        self._listeners = listeners
        self._threads = ThreadWorkers(count, reported, clock, name=name, at_thread_end=at_thread_end)
        self._tasks = LoopWorkers(count, reported, clock, name=name)

    def submit(self, messages: Sequence[CachedMessage]) -> int:
        """Takes messages of one queue, in its order; returns the number of calls that will be reported for them."""
        calls = make_calls(messages, self._listeners)
        in_threads = [call for call in calls if call.listener is not None and not call.listener.is_async]
        if in_threads:
            self._threads.submit(in_threads)
        if len(in_threads) < len(calls):
            self._tasks.submit([call for call in calls if call.listener is None or call.listener.is_async])
        return len(calls)

    def discard_waiting(self) -> list[ListenerCall]:
        """Removes the calls that have not begun, and returns them: they will not be reported."""
        return self._threads.discard_waiting() + self._tasks.discard_waiting()

    async def close(self) -> None:
        """Cancels async listeners that still run, and leaves threads behind that hang in theirs."""
        await self._tasks.close()
        await self._threads.close()
