"""What the broker needs of its event loop: a clock, tasks that run now and then, and a measure of how late it is.

Nothing here knows of messages. Times of the loop never jump: setting the machine's clock ends and prolongs nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf

logger = logging.getLogger(__name__)

LAG_INTERVAL_S = 0.25
# A lag from which on the log has a line: clients feel a second, and shorter ones are many.
LAG_LOGGED_S = 1.0


def steady_clock() -> int:
    """Returns the event loop's time in ms."""
    return int(asyncio.get_running_loop().time() * 1000)


class PeriodicTask:
    """Calls `run` every `interval_s`, the first time after one interval.

    A run that fails is logged and the next one is tried: the task never ends because of it.
    """

    def __init__(self, name: str, interval_s: float, run: Callable[[], Awaitable[None]]) -> None:
        self._name = name
        self._interval_s = interval_s
        self._run_once = run
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._waking = asyncio.Event()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self._name)

    def wake(self) -> None:
        """Makes the next run come at once."""
        self._waking.set()

    async def stop(self) -> None:
        """Returns when the task has ended; a run in progress is waited for, because half a save is worse than none."""
        self._is_stopping = True
        self._waking.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while not await self._has_stopped_within(self._interval_s):
            try:
                await self._run_once()
            except Exception:
                logger.exception("the task %s failed once; it goes on", self._name)

    async def _has_stopped_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._waking.wait()
        self._waking.clear()
        return self._is_stopping


class EventLoopLagMonitor:
    """Measures how late the event loop runs its timers: a timer of its own comes every `LAG_INTERVAL_S`.

    Times are the loop's, in seconds; lags of `logged_s` and more are logged.
    """

    def __init__(self, *, logged_s: float = LAG_LOGGED_S) -> None:
        self._logged_s = logged_s
        self._timer: asyncio.TimerHandle | None = None
        self._due_s = inf
        self._lag_s = 0.0

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._due_s = loop.time() + LAG_INTERVAL_S
        self._timer = loop.call_at(self._due_s, self._measure)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def lag_s(self, now_s: float) -> float:
        """Returns how long what is read from a socket now may have waited in the kernel at most."""
        return max(self._lag_s, now_s - self._due_s)

    def _measure(self) -> None:
        self._lag_s = asyncio.get_running_loop().time() - self._due_s
        if self._lag_s >= self._logged_s:
            logger.warning("the event loop was late by %.1f s: a slow disk, or no processor time", self._lag_s)
        # Timers run before what is read in one kind of loop, and after it in the other: the next round has read all.
        asyncio.get_running_loop().call_soon(self._after_this_round)
        self.start()

    def _after_this_round(self) -> None:
        asyncio.get_running_loop().call_soon(self._forget_lag)

    def _forget_lag(self) -> None:
        self._lag_s = 0.0
