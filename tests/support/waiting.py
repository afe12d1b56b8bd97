"""Waiting for a fact with a deadline, instead of sleeping for luck."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
POLL_S = 0.02
# For a fact that must come true: reached only by a failure, so it leaves a machine that does other things its time.
WITHIN_S = 30.0


def wait_until(fact: Callable[[], T], within_s: float = WITHIN_S, what: str = "") -> T:
    """The first truthy value of `fact()`. Raises AssertionError naming `what` after the deadline."""
    deadline = time.monotonic() + within_s
    while True:
        value = fact()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s} s: {what or fact}; last value {value!r}")
        time.sleep(POLL_S)


async def eventually(fact: Callable[[], T | Awaitable[T]], within_s: float = WITHIN_S, what: str = "") -> T:
    """As `wait_until`, on the event loop; `fact` may be async."""
    deadline = time.monotonic() + within_s
    while True:
        value = fact()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value  # type: ignore[return-value]
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s} s: {what or fact}; last value {value!r}")
        await asyncio.sleep(POLL_S)
