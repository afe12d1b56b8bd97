"""Ends an async listener that takes too long (`@listener(…, time_limit_s=30)`): it is cancelled, the message retried.

A thread cannot be ended from outside: a plain function needs time-outs in what it calls, and what runs past
RocketMQ's consume time-out is sent back while it still runs.
"""

from __future__ import annotations

import asyncio
from typing import Any

from consumer.middleware.chain import Call


class TookTooLong(Exception):
    """A listener ran into its time limit."""


def limited(call: Call, time_limit_s: float, name: str) -> Call:
    """Wraps an async listener. A TimeoutError of its own passes unchanged."""

    async def within(message: Any) -> Any:
        try:
            async with asyncio.timeout(time_limit_s) as limit:
                return await call(message)
        except TimeoutError as error:
            if limit.expired():
                raise TookTooLong(f"{name} took longer than its time limit of {time_limit_s:g} s") from error
            raise

    return within
