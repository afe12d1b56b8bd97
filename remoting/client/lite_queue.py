"""One queue that a lite pull consumer has: what was pulled and not polled yet, and where both go on. Pure.

    … consumed │ consume_offset … cached … │ pull_offset … not pulled yet

Caller: the consumer's event loop.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from remoting.client.queue_requests import PullResult
from remoting.client.received_message import ReceivedMessage
from remoting.wire.bodies.message_queue import MessageQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLimits:
    """Pulling waits beyond these (`pullThresholdForAll`, `…ForQueue`, `…SizeForQueue`, `consumeMaxSpan`)."""

    messages_max: int = 10_000
    queue_messages_max: int = 1000
    queue_bytes_max: int = 100 * 1024 * 1024
    queue_span_max: int = 2000


class LiteQueue:
    """`consume_offset` is the next offset that `take` gives out, and what a commit stores; None until it is known."""

    def __init__(self, queue: MessageQueue) -> None:
        self.queue = queue
        self.pull_offset: int | None = None
        self.consume_offset: int | None = None
        self.committed_offset: int | None = None
        self.is_paused = False
        self._batches: deque[list[ReceivedMessage]] = deque()
        self._message_count = 0
        self._bytes_count = 0

    @property
    def message_count(self) -> int:
        """Returns how many messages were pulled and not polled yet."""
        return self._message_count

    @property
    def is_ready(self) -> bool:
        """Returns whether a poll may take from it."""
        return bool(self._batches) and not self.is_paused

    def has_room(self, limits: CacheLimits) -> bool:
        """Returns whether more may be pulled into it."""
        return (
            self._message_count < limits.queue_messages_max
            and self._bytes_count < limits.queue_bytes_max
            and self._span() <= limits.queue_span_max
        )

    def begin(self, offset: int) -> None:
        """Sets where the queue is read from; forgets what was cached."""
        self.pull_offset = self.consume_offset = offset
        self._batches.clear()
        self._message_count = self._bytes_count = 0

    def put(self, result: PullResult) -> None:
        """Takes a pull's answer. What was filtered out counts as consumed once nothing before it is left."""
        if result.messages:
            self._batches.append(result.messages)
            self._message_count += len(result.messages)
            self._bytes_count += sum(len(message.body) for message in result.messages)
        self.pull_offset = result.next_offset
        self._skip_filtered()

    def take(self) -> list[ReceivedMessage]:
        """Returns the messages of the oldest pull, at least one, and moves the consume offset behind them."""
        batch = self._batches.popleft()
        self._message_count -= len(batch)
        self._bytes_count -= sum(len(message.body) for message in batch)
        self.consume_offset = batch[-1].queue_offset + 1
        self._skip_filtered()
        return batch

    def _skip_filtered(self) -> None:
        if not self._batches:
            self.consume_offset = self.pull_offset

    def _span(self) -> int:
        return self._batches[-1][-1].queue_offset - self._batches[0][0].queue_offset if self._batches else 0
