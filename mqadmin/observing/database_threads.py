"""The threads in which the follower reads and writes rows: Django's ORM is synchronous, a thread has a connection.

All clusters share a few threads (`DatabaseThreads`), so that fifty clusters cost PostgreSQL a few connections and not
fifty. Each cluster has one step at a time in them (`DatabaseSteps`): what it writes is written in turn.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import Error as DatabaseError
from django.db import connections

T = TypeVar("T")

# A large snapshot holds one of them for some seconds; SQLite has one writer at a time anyhow.
SHARED_COUNT = 4


class Interrupted(Exception):
    """A long step was left between two of its parts, because its cluster is followed no longer."""


class DatabaseThreads:
    """So many threads, each with a database connection of its own."""

    def __init__(self, name: str, count: int) -> None:
        self._count = count
        self._executor = ThreadPoolExecutor(max_workers=count, thread_name_prefix=name)

    def submit(self, step: Callable[..., T], *arguments: Any) -> Future[T]:
        return self._executor.submit(_reconnecting, step, *arguments)

    async def close(self) -> None:
        """Closes each thread's connection. No step may be in progress."""
        all_are_here = threading.Barrier(self._count)

        def close_connection() -> None:
            # Each thread takes exactly one of these, because none goes on before each has one.
            all_are_here.wait()
            connections.close_all()

        await asyncio.gather(*(asyncio.wrap_future(self.submit(close_connection)) for _ in range(self._count)))
        self._executor.shutdown(wait=False)


class DatabaseSteps:
    """One cluster's steps in the shared threads, one after another."""

    def __init__(self, threads: DatabaseThreads) -> None:
        self._threads = threads
        self._turn = asyncio.Lock()
        self._is_closing = threading.Event()
        self._last: Future[Any] | None = None

    async def run(self, step: Callable[..., T], *arguments: Any) -> T:
        """Returns what `step` returns. When the caller is cancelled, a step that has begun goes on in its thread."""
        async with self._turn:
            await self._ended()
            running = self._threads.submit(step, *arguments)
            self._last = running
            return await asyncio.wrap_future(running)

    def raise_if_closing(self) -> None:
        """Raises Interrupted, between two parts of a long step, when no more is to be written."""
        if self._is_closing.is_set():
            raise Interrupted

    async def close(self) -> None:
        """Waits for the step in progress, up to its next part."""
        self._is_closing.set()
        await self._ended()

    async def _ended(self) -> None:
        if self._last is not None:
            await asyncio.gather(asyncio.wrap_future(self._last), return_exceptions=True)


def _reconnecting(step: Callable[..., T], *arguments: Any) -> T:
    try:
        return step(*arguments)
    except DatabaseError:
        # A connection that broke is not used again.
        connections.close_all()
        raise
