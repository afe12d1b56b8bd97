"""Waiting for a fact with a deadline, instead of sleeping for luck."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
POLL_S = 0.02
# The longer a wait lasts, the less often it looks: what is asked for costs the machine that is waited for.
POLL_MAX_S = 0.25
POLL_SHARE = 0.1
# For a fact that must come true: reached only by a failure, so it leaves a machine that does other things its time.
# And it leaves Apache's broker its own: a member whose connection was closed while its heartbeat was being handled
# counts for 120 s more, which is looked for every 10 s, and the others rebalance up to 20 s later.
WITHIN_S = 180.0


# What is waited for; called after the deadline, it may tell how things stand.
What = str | Callable[[], str]


def wait_until(
    fact: Callable[[], T], within_s: float = WITHIN_S, what: What = "", *, pause_max_s: float = POLL_MAX_S
) -> T:
    """The first truthy value of `fact()`. Raises AssertionError naming `what` after the deadline."""
    began = time.monotonic()
    while True:
        value = fact()
        if value:
            return value
        waited_s = time.monotonic() - began
        if waited_s > within_s:
            raise AssertionError(_late(within_s, what or repr(fact), value))
        time.sleep(_pause_s(waited_s, pause_max_s))


async def eventually(
    fact: Callable[[], T | Awaitable[T]],
    within_s: float = WITHIN_S,
    what: What = "",
    *,
    pause_max_s: float = POLL_MAX_S,
) -> T:
    """As `wait_until`, on the event loop; `fact` may be async."""
    began = time.monotonic()
    while True:
        value = fact()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value  # type: ignore[return-value]
        waited_s = time.monotonic() - began
        if waited_s > within_s:
            raise AssertionError(_late(within_s, what or repr(fact), value))
        await asyncio.sleep(_pause_s(waited_s, pause_max_s))


async def cancelled_after(coroutine: Coroutine[Any, Any, object], turns: int) -> None:
    """Runs a coroutine for so many turns of the event loop, cancels it and waits for its end. 0: it never begins."""
    task = asyncio.ensure_future(coroutine)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _late(within_s: float, what: What, value: object) -> str:
    return f"not within {within_s} s: {what() if callable(what) else what}; last value {value!r}"


def _pause_s(waited_s: float, pause_max_s: float) -> float:
    return min(max(POLL_S, POLL_SHARE * waited_s), pause_max_s)
