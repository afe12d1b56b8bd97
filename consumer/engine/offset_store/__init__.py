"""Where a group's progress is kept. One contract, two stores; `tests/contracts/` holds it.

An offset is always the next to consume. In memory it is what this member knows of the queues it owns; the
broker is the only truth, for ownership moves and the previous owner may be gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from remoting.wire.bodies.message_queue import MessageQueue


class OffsetStore(Protocol):
    async def load(self, queue: MessageQueue) -> int | None:
        """The stored offset, None when there is none; memory forgets what it held. Raises ClientError."""
        ...

    def known(self, queue: MessageQueue) -> int | None:
        """What memory holds."""
        ...

    def advance(self, queue: MessageQueue, offset: int) -> None:
        """Progress; a smaller offset than the known one changes nothing."""
        ...

    def reset(self, queue: MessageQueue, offset: int) -> None:
        """An operator's or the broker's word: also backwards."""
        ...

    def forget(self, queue: MessageQueue) -> None: ...

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        """Sends what is known of `queues` without waiting for an answer. Never raises: the next time comes."""
        ...

    async def persist_surely(self, queues: Iterable[MessageQueue]) -> list[MessageQueue]:
        """As `persist`, and returns when the store has it: the queues for which it could not be had."""
        ...
