"""Has the store's oldest segment removed, one at a time, its files by a thread: unlinking 256 MiB takes a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from broker.engine.store.message_store import MessageStore
from broker.engine.store.retention import Removal


class Remover:
    """Callers: scheduled retention (`start`), the disk's watch (`remove`), the runtime (`stop`). Event loop only."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._running: asyncio.Task[bool] | None = None

    @property
    def is_busy(self) -> bool:
        return self._running is not None and not self._running.done()

    def start(self, on_done: Callable[[], None]) -> bool:
        """Whether a removal was begun; `on_done` is called when it is over, however it went."""
        removal = None if self.is_busy else self._store.retention.begin()
        if removal is None:
            return False
        self._running = asyncio.create_task(self._carry_out(removal), name=f"remove {removal.name}")
        self._running.add_done_callback(lambda _: on_done())
        return True

    async def remove(self) -> bool:
        """Whether the oldest segment was removed. Waits for a removal under way first."""
        await self.stop()
        if not self.start(lambda: None) or self._running is None:
            return False
        return await asyncio.shield(self._running)

    async def stop(self) -> None:
        """Returns when nothing is being removed any more."""
        if self._running is not None:
            await asyncio.wait([self._running])

    async def _carry_out(self, removal: Removal) -> bool:
        error: OSError | None = None
        try:
            await asyncio.to_thread(removal.carry_out)
        except OSError as failure:
            error = failure
        self._store.retention.finish(removal, error)
        return error is None
