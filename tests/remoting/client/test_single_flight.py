from __future__ import annotations

import asyncio

import pytest

from remoting.client.single_flight import SingleFlight


async def test_calls_at_the_same_time_share_one_result_and_later_ones_get_a_new_one() -> None:
    flights: SingleFlight[str, int] = SingleFlight()
    made = 0

    async def make() -> int:
        nonlocal made
        made += 1
        mine = made
        await asyncio.sleep(0)
        return mine

    assert await asyncio.gather(*(flights.run("a", make) for _ in range(5))) == [1] * 5
    assert await flights.run("a", make) == 2
    assert await asyncio.gather(flights.run("a", make), flights.run("b", make)) == [3, 4]


async def test_an_error_goes_to_all() -> None:
    flights: SingleFlight[str, int] = SingleFlight()

    async def fail() -> int:
        await asyncio.sleep(0)
        raise ValueError("no")

    results = await asyncio.gather(*(flights.run("a", fail) for _ in range(3)), return_exceptions=True)
    assert [str(result) for result in results] == ["no"] * 3


async def test_an_error_without_waiting_callers_is_not_logged_as_never_retrieved() -> None:
    flights: SingleFlight[str, int] = SingleFlight()

    async def fail() -> int:
        await asyncio.sleep(0.01)
        raise ValueError("no")

    waiting = asyncio.create_task(flights.run("a", fail))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await asyncio.sleep(0.02)


async def test_closing_cancels_running_calls() -> None:
    flights: SingleFlight[str, None] = SingleFlight()
    waiting = asyncio.create_task(flights.run("a", lambda: asyncio.sleep(60)))
    await asyncio.sleep(0)
    await flights.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
