"""Retention that a tool asks for (RocketMQ's `executeDeleteFilesManually` and `cleanExpiredConsumerQueue`).

What is removed is what scheduled retention would remove, whatever the hour of the day: segments that are older than
`fileReservedTime` and that nothing needs, and index files without a message. One round at a time; another request
while it runs changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from broker.engine.config import BrokerConfig
from broker.engine.retention.remover import Remover
from broker.engine.retention.rules import HOUR_MS
from broker.engine.store.message_store import MessageStore

# Of one request: 20 rounds of 10 files, as RocketMQ's `MAX_MANUAL_DELETE_FILE_TIMES` and `deleteFileBatchMax` give.
SEGMENTS_MAX = 200
# A segment waits for a flush or a checkpoint before it may be removed; so many tries, with this pause.
TRIES_MAX = 20
RETRY_S = 1.0


class RequestedRetention:
    """Callers: the processors of 306 and 329, the broker's stop. Affects the store through `remover`.

    `clock`: ms since the epoch.
    """

    def __init__(
        self,
        store: MessageStore,
        remover: Remover,
        config: BrokerConfig,
        clock: Callable[[], int],
        *,
        retry_s: float = RETRY_S,
    ) -> None:
        self._store = store
        self._remover = remover
        self._config = config
        self._clock = clock
        self._retry_s = retry_s
        self._running: asyncio.Task[None] | None = None

    def remove_expired(self) -> None:
        """Starts the removal of all segments that are old enough."""
        self._start(self._remove_expired(), "remove expired segments")

    def remove_index_files(self) -> None:
        """Starts the removal of all index files without a message."""
        self._start(self._remove_index_files(), "remove index files")

    async def stop(self) -> None:
        """Ends the round; a removal under way is the remover's."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    def _start(self, round_: Coroutine[Any, Any, None], name: str) -> None:
        if self._running is not None and not self._running.done():
            round_.close()
            return
        self._running = asyncio.create_task(round_, name=name)

    async def _remove_expired(self) -> None:
        removed_count = tries_count = 0
        while self._has_expired() and removed_count < SEGMENTS_MAX and tries_count < TRIES_MAX:
            if await self._remover.remove():
                removed_count, tries_count = removed_count + 1, 0
            else:
                tries_count += 1
                await asyncio.sleep(self._retry_s)

    def _has_expired(self) -> bool:
        """Tells whether the oldest segment is old enough. While another removal runs, that may be."""
        if self._remover.is_busy:
            return True
        oldest = self._store.retention.oldest
        if oldest is None or oldest.closed_ms is None or oldest.is_pinned:
            return False
        return oldest.closed_ms + self._config.file_reserved_hours * HOUR_MS <= self._clock()

    async def _remove_index_files(self) -> None:
        while await self._remover.remove_index_files():
            pass
