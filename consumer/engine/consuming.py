"""How pulled messages reach the listeners (Java `ConsumeMessageService`), concurrently or in order.

A consumer has one `Consuming` for all its queues. Pull loops put messages into their process queue and submit them;
from then on the implementation decides when a listener gets them. It removes finished messages from the process queue
(that tells the pull loop that there is room) and advances the offset store. It shares the table of process queues with
`OwnedQueues`, which alone changes it.
"""

from __future__ import annotations

from typing import Protocol

from consumer.engine.process_queue import CachedMessage


class Consuming(Protocol):
    """Called on the event loop alone. `start()` comes before the first `submit()`; `stop()`, then `close()`, once."""

    def start(self) -> None: ...

    def submit(self, messages: list[CachedMessage]) -> None:
        """Takes messages that were just put into their process queue; all of one queue, in the queue's order."""
        ...

    async def stop(self, timeout_s: float) -> int:
        """Discards what no listener has begun, waits for the rest; returns how many listeners still run then."""
        ...

    async def close(self) -> None:
        """Ends workers and tasks; a listener that hangs in a thread is left behind."""
        ...
