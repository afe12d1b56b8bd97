"""One answer for all who ask for the same thing at the same time.

Owns the tasks it starts: none outlives `close()`. A caller that is cancelled takes nothing away from the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    def __init__(self) -> None:
        self._flights: dict[K, asyncio.Task[V]] = {}

    async def run(self, key: K, make: Callable[[], Awaitable[V]]) -> V:
        """The result of `make()`, which runs once however many ask for `key` meanwhile; its error goes to all."""
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.ensure_future(_as_coroutine(make))
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._landed(key, done))
        return await asyncio.shield(flight)

    async def close(self) -> None:
        """Cancels what is under way; those who wait for it are cancelled too."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    def _landed(self, key: K, flight: asyncio.Task[V]) -> None:
        self._flights.pop(key, None)
        if not flight.cancelled():
            flight.exception()  # seen: whoever still waits gets it, and nobody else has to


async def _as_coroutine(make: Callable[[], Awaitable[V]]) -> V:
    return await make()
