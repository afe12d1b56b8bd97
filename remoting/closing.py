"""Closing several things one after the other, of which each is closed in any case."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack


async def close_in_turn(*steps: Callable[[], Awaitable[object]]) -> None:
    """Awaits the steps in their order, each also where one before raised or was cancelled; raises the last error."""
    async with AsyncExitStack() as stack:
        for step in reversed(steps):
            stack.push_async_callback(step)
