"""Steps of many clusters in a few threads."""

from __future__ import annotations

import asyncio
import threading

import pytest
from django.db import DatabaseError

from mqadmin.observing.database_threads import DatabaseSteps, DatabaseThreads, Interrupted


async def test_steps_of_one_cluster_run_in_turn_and_those_of_two_beside_each_other() -> None:
    threads = DatabaseThreads("steps", 2)
    one, other = DatabaseSteps(threads), DatabaseSteps(threads)
    both = threading.Barrier(2)
    order: list[str] = []

    def meet(name: str) -> None:
        both.wait(60)
        order.append(name)

    first, second = asyncio.create_task(one.run(meet, "met")), asyncio.create_task(one.run(order.append, "after"))
    await other.run(both.wait, 30)
    await asyncio.gather(first, second)
    assert order == ["met", "after"]
    await threads.close()


async def test_step_whose_caller_was_cancelled_ends_before_the_next_and_before_the_close() -> None:
    threads = DatabaseThreads("steps", 2)
    steps = DatabaseSteps(threads)
    has_begun, may_end = threading.Event(), threading.Event()
    ended: list[str] = []

    def step() -> None:
        has_begun.set()
        may_end.wait(60)
        try:
            steps.raise_if_closing()
        except Interrupted:
            ended.append("interrupted")
            raise
        ended.append("whole")

    running = asyncio.create_task(steps.run(step))
    await asyncio.to_thread(has_begun.wait, 30)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    after = asyncio.create_task(steps.run(ended.append, "after"))
    may_end.set()
    await after
    assert ended == ["whole", "after"]

    has_begun.clear()
    may_end.clear()
    running = asyncio.create_task(steps.run(step))
    await asyncio.to_thread(has_begun.wait, 30)
    running.cancel()
    closing = asyncio.create_task(steps.close())
    await asyncio.sleep(0)
    may_end.set()
    await closing
    assert ended == ["whole", "after", "interrupted"]
    await threads.close()


async def test_what_a_step_raises_reaches_its_caller_and_the_next_step_runs() -> None:
    threads = DatabaseThreads("steps", 1)
    steps = DatabaseSteps(threads)

    def fail() -> None:
        raise DatabaseError("gone")

    with pytest.raises(DatabaseError, match="gone"):
        await steps.run(fail)
    assert await steps.run(lambda: 7) == 7
    await steps.close()
    await threads.close()
