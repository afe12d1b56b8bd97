"""Runs one call for all callers that need the same result at the same time.

Owns the tasks it starts: none outlives `close()`. A caller that is cancelled takes nothing away from the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Keyed calls of which at most one per key runs at a time."""

    def __init__(self) -> None:
        self._running: dict[K, asyncio.Task[V]] = {}

    async def run(self, key: K, make: Callable[[], Awaitable[V]]) -> V:
        """Returns the result of `make()`, which runs once for all who call with `key` meanwhile.

        Its error is raised to all.
        """
        task = self._running.get(key)
        if task is None:
            task = asyncio.ensure_future(_as_coroutine(make))
            self._running[key] = task
            task.add_done_callback(lambda done: self._ended(key, done))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Cancels the running calls; those who wait for them are cancelled, too."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, key: K, task: asyncio.Task[V]) -> None:
        self._running.pop(key, None)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it where all callers were cancelled


async def _as_coroutine(make: Callable[[], Awaitable[V]]) -> V:
    return await make()
