"""Where a consumer group's progress is kept (Java `OffsetStore`): in memory while a queue is owned, and in a store.

An offset is always the next to consume. The copy in memory is what this member consumed of the queues that it owns;
the store (the broker, for clustering) is the only truth, since another member may have owned the queue in between.
`tests/contracts/test_offset_store.py` holds every implementation to the same contract.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from remoting.wire.bodies.message_queue import MessageQueue


class OffsetStore(ABC):
    """Owns the offsets in memory; subclasses load and persist them."""

    def __init__(self) -> None:
        self._offsets: dict[MessageQueue, int] = {}

    async def open(self) -> None:
        """Opens the store, before the first `load`. Raises OSError, and OffsetsUnreadable for a torn file."""
        return

    async def close(self) -> None:
        """Closes the store, after the last `persist`."""
        return

    def offset_with_pull(self, queue: MessageQueue) -> int:  # noqa: ARG002
        """Returns the offset to commit that a pull of `queue` carries to its broker; 0 for none."""
        return 0

    def held_offset(self, queue: MessageQueue) -> int | None:
        """Returns the offset in memory."""
        return self._offsets.get(queue)

    def advance(self, queue: MessageQueue, offset: int) -> None:
        """Raises the offset in memory to `offset`; never lowers it."""
        if offset > self._offsets.get(queue, -1):
            self._offsets[queue] = offset

    def reset(self, queue: MessageQueue, offset: int) -> None:
        """Sets the offset in memory, also backwards: for resets by operators and corrections by the broker."""
        self._offsets[queue] = offset

    def forget(self, queue: MessageQueue) -> None:
        """Removes the offset from memory; what is stored stays."""
        self._offsets.pop(queue, None)

    @abstractmethod
    async def load(self, queue: MessageQueue) -> int | None:
        """Returns the stored offset, None when there is none; removes the one in memory. Raises ClientError."""

    @abstractmethod
    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        """Sends the offsets of `queues` to the store without waiting for an answer; logs failures, never raises."""

    @abstractmethod
    async def persist_and_confirm(self, queues: Iterable[MessageQueue]) -> list[MessageQueue]:
        """Sends the offsets of `queues` to the store and waits for it; returns the queues that were not stored."""

    def _held(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int]:
        return {queue: self._offsets[queue] for queue in queues if queue in self._offsets}
