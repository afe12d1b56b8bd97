"""The pulled and unfinished messages of one message queue (Java `ProcessQueue`).

Owns the messages by queue offset, and the rule for the offset to commit: that of the smallest unfinished message. With
nothing unfinished it is where the next pull starts, so that messages that were filtered out behind the last one count
too; Java leaves them to the next pull.

Knows no clock, no socket and no listener. Only the event loop uses it, except `CachedMessage.started_ms`, which a
consuming thread sets. Messages of a dropped process queue belong to another member: their results are ignored.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable

from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.stored_message import StoredMessage

# Messages that one scan for overdue ones returns at most.
OVERDUE_MESSAGES_MAX = 16


class CachedMessage:
    """A pulled message. `started_ms`: when its listener was called, else 0. `reconsume_times` counts local retries."""

    __slots__ = ("process_queue", "reconsume_times", "started_ms", "stored")

    def __init__(self, process_queue: ProcessQueue, stored: StoredMessage) -> None:
        self.process_queue = process_queue
        self.stored = stored
        self.started_ms = 0
        self.reconsume_times = stored.reconsume_times


class ProcessQueue:
    """`is_dropped` once another member owns the queue. Times in ms since the epoch; 0 is "never"."""

    def __init__(self, queue: MessageQueue, now_ms: int) -> None:
        self.queue = queue
        # As logged.
        self.name = f"{queue.topic}[{queue.broker_name}:{queue.queue_id}]"
        self.is_dropped = False
        self.last_pull_ms = now_ms
        self.last_consume_ms = 0
        self.body_bytes = 0
        self._messages: dict[int, CachedMessage] = {}
        # Offsets in a heap; finished ones leave it when they reach the top.
        self._offsets: list[int] = []
        self._next_offset = -1
        self._removed: asyncio.Event | None = None

    def put(self, messages: Iterable[StoredMessage], next_offset: int) -> list[CachedMessage]:
        """Adds pulled messages; returns those that were not here before, in order.

        `next_offset`: where the next pull starts.
        """
        self._next_offset = next_offset
        added: list[CachedMessage] = []
        for stored in messages:
            offset = stored.queue_offset
            if offset in self._messages:
                continue
            cached = CachedMessage(self, stored)
            self._messages[offset] = cached
            heapq.heappush(self._offsets, offset)
            self.body_bytes += len(stored.body)
            added.append(cached)
        return added

    def remove(self, messages: Iterable[CachedMessage]) -> int:
        """Removes finished messages; returns the offset to commit then, -1 when nothing was here."""
        if not self._messages:
            return -1
        removed_bytes = removed_count = 0
        for cached in messages:
            if self._messages.pop(cached.stored.queue_offset, None) is not None:
                removed_bytes += len(cached.stored.body)
                removed_count += 1
        self.body_bytes -= removed_bytes
        if removed_count and self._removed is not None:
            self._removed.set()
        first = self.offset_min
        return self._next_offset if first is None else first

    async def wait_for_removal(self) -> None:
        """Returns after the next `remove()`. Caller: the queue's pull loop, which alone waits for room."""
        self._removed = asyncio.Event()
        try:
            await self._removed.wait()
        finally:
            self._removed = None

    @property
    def first(self) -> CachedMessage | None:
        """Returns the unfinished message with the smallest offset; None when empty."""
        offset = self.offset_min
        return None if offset is None else self._messages[offset]

    def holds(self, cached: CachedMessage) -> bool:
        return self._messages.get(cached.stored.queue_offset) is cached

    def overdue(self, now_ms: int, timeout_ms: int) -> list[CachedMessage]:
        """Returns the smallest offsets' messages whose listeners have run for longer than `timeout_ms`.

        They hold up the offset to commit. A message that waits for a thread is not overdue, nor is one behind it.
        """
        found: list[CachedMessage] = []
        for offset in sorted(self._messages)[:OVERDUE_MESSAGES_MAX]:
            cached = self._messages[offset]
            if not cached.started_ms or now_ms - cached.started_ms <= timeout_ms:
                break
            found.append(cached)
        return found

    def drop(self) -> None:
        """Removes everything, for good: another member owns the queue from now on."""
        self.is_dropped = True
        self._messages.clear()
        self._offsets.clear()
        self.body_bytes = 0

    @property
    def message_count(self) -> int:
        return len(self._messages)

    @property
    def offset_min(self) -> int | None:
        """Returns the smallest offset here; None when empty."""
        offsets, messages = self._offsets, self._messages
        while offsets and offsets[0] not in messages:
            heapq.heappop(offsets)
        return offsets[0] if offsets else None

    @property
    def offset_max(self) -> int | None:
        """Returns the largest offset here; None when empty. It was pulled last, since pulls only go forward."""
        return next(reversed(self._messages), None)

    @property
    def span(self) -> int:
        """Returns the distance between the smallest and the largest offset here."""
        first, last = self.offset_min, self.offset_max
        return 0 if first is None or last is None else last - first
