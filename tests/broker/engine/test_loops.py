"""Loops: they go on after a failure, and a stop waits for the round in progress."""

from __future__ import annotations

import asyncio

from broker.engine.loops import Loop
from tests.support.waiting import eventually


async def test_a_loop_goes_on_after_a_round_that_failed(caplog) -> None:
    rounds: list[int] = []

    async def fail() -> None:
        rounds.append(len(rounds))
        raise OSError("disk gone")

    loop = Loop("save", 0.001, fail)
    loop.start()
    await eventually(lambda: len(rounds) >= 3)
    await loop.stop()
    assert "the loop save failed once; it goes on" in caplog.text
    assert loop.last_round_s is not None


async def test_a_stop_waits_for_the_round_in_progress_and_no_other_begins() -> None:
    begun, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def save() -> None:
        begun.set()
        await may_end.wait()
        ended.set()

    loop = Loop("save", 0.001, save)
    loop.start()
    await begun.wait()
    stopping = asyncio.create_task(loop.stop())
    await asyncio.sleep(0)
    assert not stopping.done()
    begun.clear()
    may_end.set()
    await stopping
    assert ended.is_set()
    assert not begun.is_set()


async def test_a_stop_cuts_the_wait_short() -> None:
    async def never() -> None:
        raise AssertionError("its time had not come")

    loop = Loop("save", 3600, never)
    loop.start()
    async with asyncio.timeout(5):
        await loop.stop()


async def test_a_loop_that_was_not_started_stops() -> None:
    async def never() -> None: ...

    await Loop("save", 1, never).stop()


async def test_a_loop_in_a_hurry_does_its_round_at_once_and_waits_again() -> None:
    rounds: list[int] = []

    async def save() -> None:
        rounds.append(len(rounds))

    loop = Loop("save", 3600, save)
    loop.start()
    loop.hurry()
    await eventually(lambda: len(rounds) == 1)
    loop.hurry()
    await eventually(lambda: len(rounds) == 2)
    await loop.stop()
    assert len(rounds) == 2
