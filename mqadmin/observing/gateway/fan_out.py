"""Many requests to many servers: few at once, bounded together, each server's failure its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from mqadmin.observing.gateway.failures import ChangeFailure, Failures
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
    answers: dict[K, V] = {}
    slots = asyncio.Semaphore(IN_FLIGHT_MAX)

    async def ask(key: K, call: Callable[[K], Awaitable[V]]) -> None:
        async with slots:
            address = address_of(key)
            if address in failures.reasons:
                return
            try:
                answers[key] = await call(key)
            except (ClientError, WireError) as error:
                failures.note(address, error)

    tasks = {asyncio.ensure_future(ask(key, call)): address_of(key) for key, call in calls.items()}
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=timeout_s)
        for task in late:
            task.cancel()
            failures.note(tasks[task], TimeoutError(f"{tasks[task]} did not answer within {timeout_s:.0f} s"))
        # Raises what is our own mistake, after all have ended.
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
    return answers


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
