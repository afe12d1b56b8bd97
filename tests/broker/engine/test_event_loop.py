"""Periodic tasks go on after a failure, and a stop waits for the run in progress; a late event loop is measured."""

from __future__ import annotations

import asyncio
import time

import pytest

from broker.engine.event_loop import LAG_INTERVAL_S, EventLoopLagMonitor, PeriodicTask
from tests.support.waiting import eventually


async def test_a_task_goes_on_after_a_run_that_failed(caplog) -> None:
    runs: list[int] = []

    async def fail() -> None:
        runs.append(len(runs))
        raise OSError("disk gone")

    task = PeriodicTask("save", 0.001, fail)
    task.start()
    await eventually(lambda: len(runs) >= 3)
    await task.stop()
    assert "the task save failed once; it goes on" in caplog.text


async def test_a_stop_waits_for_the_run_in_progress_and_no_other_begins() -> None:
    begun, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def save() -> None:
        begun.set()
        await may_end.wait()
        ended.set()

    task = PeriodicTask("save", 0.001, save)
    task.start()
    await begun.wait()
    stopping = asyncio.create_task(task.stop())
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

    task = PeriodicTask("save", 3600, never)
    task.start()
    async with asyncio.timeout(60):
        await task.stop()


async def test_a_task_that_was_not_started_stops() -> None:
    async def never() -> None: ...

    await PeriodicTask("save", 1, never).stop()


async def test_a_task_that_is_woken_runs_at_once_and_waits_again() -> None:
    runs: list[int] = []

    async def save() -> None:
        runs.append(len(runs))

    task = PeriodicTask("save", 3600, save)
    task.start()
    task.wake()
    await eventually(lambda: len(runs) == 1)
    task.wake()
    await eventually(lambda: len(runs) == 2)
    await task.stop()
    assert len(runs) == 2


@pytest.mark.slow
async def test_a_lag_is_seen_while_what_came_meanwhile_is_read_and_forgotten_then(caplog):
    loop = asyncio.get_running_loop()
    monitor = EventLoopLagMonitor(logged_s=LAG_INTERVAL_S)
    started_s = loop.time()
    monitor.start()
    await asyncio.sleep(0)
    assert monitor.lag_s(started_s + LAG_INTERVAL_S) <= 0
    seen: list[float] = []
    loop.call_later(2 * LAG_INTERVAL_S, lambda: seen.append(monitor.lag_s(loop.time())))
    time.sleep(3 * LAG_INTERVAL_S)  # noqa: ASYNC251 - the lag itself
    await eventually(lambda: seen)
    assert seen[0] >= 1.9 * LAG_INTERVAL_S
    assert "the event loop was late by" in caplog.text
    await eventually(lambda: monitor.lag_s(loop.time()) < LAG_INTERVAL_S)
    monitor.stop()
