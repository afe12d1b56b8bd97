"""The window of one message queue: what was pulled and is not finished (Java `ProcessQueue`).

Owns the messages by queue offset, and the one rule that keeps progress honest: the offset to commit is that of the
smallest message not finished yet, never more. With nothing unfinished it is where the next pull starts,
so that messages that were filtered out behind the last one count too; Java leaves them to the next pull.

Knows no clock, no socket and no listener; it is touched by the event loop alone, except `CachedMessage.started_ms`,
which a consuming thread sets.

Messages of a dropped window belong to another member: their results are ignored.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.stored_message import StoredMessage

# How many heads one look for overdue messages takes at most.
OVERDUE_MESSAGES_MAX = 16


class CachedMessage:
    """One pulled message and where it is in its short life here.

    `started_ms`: when its listener was called, 0 before. `reconsume_times` counts local retries too.
    """

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
        # For the log.
        self.name = f"{queue.topic}[{queue.broker_name}:{queue.queue_id}]"
        self.is_dropped = False
        self.last_pull_ms = now_ms
        self.last_consume_ms = 0
        self.body_bytes = 0
        self._messages: dict[int, CachedMessage] = {}
        # Offsets in a heap; finished ones leave it when they reach the top.
        self._offsets: list[int] = []
        self._next_offset = -1

    def put(self, messages: Iterable[StoredMessage], next_offset: int) -> list[CachedMessage]:
        """Takes pulled messages in; those that are new, in order. One that is here already stays as it is.

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

    def remove(self, cached: CachedMessage) -> int:
        """Progress once `cached` is finished: the next offset to consume, -1 when it was not here."""
        if not self._messages:
            return -1
        offset = cached.stored.queue_offset
        if self._messages.pop(offset, None) is not None:
            self.body_bytes -= len(cached.stored.body)
        first = self.offset_min
        return self._next_offset if first is None else first

    def holds(self, cached: CachedMessage) -> bool:
        return self._messages.get(cached.stored.queue_offset) is cached

    def overdue(self, now_ms: int, timeout_ms: int) -> list[CachedMessage]:
        """Messages at the head whose listener has run for longer than `timeout_ms`: they pin the progress.

        A message that waits for a thread is not overdue, nor is one behind another that waits.
        """
        found: list[CachedMessage] = []
        for offset in sorted(self._messages)[:OVERDUE_MESSAGES_MAX]:
            cached = self._messages[offset]
            if not cached.started_ms or now_ms - cached.started_ms <= timeout_ms:
                break
            found.append(cached)
        return found

    def drop(self) -> None:
        """Another member owns the queue from now on; what is here is forgotten."""
        self.is_dropped = True
        self._messages.clear()
        self._offsets.clear()
        self.body_bytes = 0

    @property
    def message_count(self) -> int:
        return len(self._messages)

    @property
    def offset_min(self) -> int | None:
        """The smallest offset here; None when empty."""
        offsets, messages = self._offsets, self._messages
        while offsets and offsets[0] not in messages:
            heapq.heappop(offsets)
        return offsets[0] if offsets else None

    @property
    def offset_max(self) -> int | None:
        """The largest offset here; None when empty. Pulls only go forward, so it came last."""
        return next(reversed(self._messages), None)

    @property
    def span(self) -> int:
        """Distance between the smallest and the largest offset cached."""
        first, last = self.offset_min, self.offset_max
        return 0 if first is None or last is None else last - first

    def oldest_started_ms(self) -> int:
        """Since when the listener that runs longest has been running; 0 when none runs."""
        return min((cached.started_ms for cached in self._messages.values() if cached.started_ms), default=0)
