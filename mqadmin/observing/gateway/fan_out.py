"""Many requests to many servers: few at once, bounded together, each server's failure its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from mqadmin.observing.gateway.failures import ChangeFailure, Failures
from remoting.client.admin.partial import NotAnswered, ask_each
from remoting.client.errors import ClientError, ConnectionLost
from remoting.wire.errors import WireError

# A whole sample; brokers that answered by then count.
SAMPLE_TIMEOUT_S = 20.0
# All requests of one change.
CHANGE_TIMEOUT_S = 60.0
# Requests in flight at once: a sample must not crowd out a broker's clients.
IN_FLIGHT_MAX = 8

K = TypeVar("K")
V = TypeVar("V")


async def fan_out(
    calls: Mapping[K, Callable[[K], Awaitable[V]]],
    address_of: Callable[[K], str],
    failures: Failures,
    *,
    timeout_s: float = SAMPLE_TIMEOUT_S,
) -> dict[K, V]:
    """Makes all calls, few at once, within `timeout_s`; a broker that failed once is not asked again in this round."""
    slots = asyncio.Semaphore(IN_FLIGHT_MAX)

    async def ask(key: K) -> V:
        async with slots:
            address = address_of(key)
            if address in failures.reasons:
                raise _AskedEnough
            try:
                return await calls[key](key)
            except (ClientError, WireError) as error:
                failures.note(address, error)
                raise

    partial = await ask_each(calls, ask, timeout_ms=round(timeout_s * 1000))
    for key, error in partial.errors.items():
        if isinstance(error, NotAnswered):
            address = address_of(key)
            failures.note(address, TimeoutError(f"{address} did not answer within {timeout_s:.0f} s"))
    return partial.answers


class _AskedEnough(ClientError):
    """The broker failed in this round; its reason is kept."""


async def change_all(calls: Mapping[str, Callable[[str], Awaitable[None]]]) -> dict[str, ChangeFailure]:
    """Makes all changes, few at once; returns those that failed. All together take CHANGE_TIMEOUT_S at most."""
    failures: dict[str, ChangeFailure] = {}
    slots = asyncio.Semaphore(IN_FLIGHT_MAX)

    async def change(address: str, call: Callable[[str], Awaitable[None]]) -> None:
        try:
            async with asyncio.timeout(CHANGE_TIMEOUT_S), slots:
                await call(address)
        except (ConnectionLost, TimeoutError) as error:
            reason = str(error) or f"{address} did not answer within {CHANGE_TIMEOUT_S:.0f} s"
            failures[address] = ChangeFailure(reason, is_unknown=True)
        except (ClientError, WireError) as error:
            failures[address] = ChangeFailure(str(error), is_unknown=False)

    await asyncio.gather(*(change(address, call) for address, call in calls.items()))
    return failures
