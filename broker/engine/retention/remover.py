"""Removes the oldest segment of the store, one at a time; a thread deletes the files: 256 MiB take a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from broker.engine.store.message_store import MessageStore
from broker.engine.store.retention import Removal


class Remover:
    """Runs removals of segments. Event loop only.

    Callers: `ScheduledRetention` (`start`), `DiskSpaceCheck` and `RequestedRetention` (`remove`), the runtime (`stop`).
    Affects the store.
    """

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._running: asyncio.Task[bool] | None = None

    @property
    def is_busy(self) -> bool:
        """Tells whether a removal is under way."""
        return self._running is not None and not self._running.done()

    def start(self, on_done: Callable[[], None]) -> bool:
        """Starts the removal of the oldest segment. Returns False if it may not be removed, or another removal runs.

        Calls `on_done` when the removal has ended, also when it failed. Raises OSError.
        """
        return self._start(None if self.is_busy else self._store.retention.begin(), on_done)

    def _start(self, removal: Removal | None, on_done: Callable[[], None]) -> bool:
        if removal is None:
            return False
        self._running = asyncio.create_task(self._carry_out(removal), name=f"remove {removal.name}")
        self._running.add_done_callback(lambda _: on_done())
        return True

    async def remove(self) -> bool:
        """Removes the oldest segment, after a removal under way has ended. Returns whether it was removed."""
        await self.stop()
        return self.start(lambda: None) and await self._ended()

    async def remove_index_files(self) -> bool:
        """Removes index files that earlier removals left, as `remove`. Returns whether some were removed."""
        await self.stop()
        return self._start(self._store.retention.begin_index_files(), lambda: None) and await self._ended()

    async def _ended(self) -> bool:
        """Returns whether the removal that was started last has succeeded."""
        assert self._running is not None
        return await asyncio.shield(self._running)

    async def stop(self) -> None:
        """Waits until the removal under way has ended."""
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
