"""Background loops of the broker: each has a name, a heartbeat that says when it last went round, and a stop.

A round that fails is logged and the next one is tried; a loop never dies of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

logger = logging.getLogger(__name__)


class Loop:
    """Calls `round_` every `interval_s`; the first time after one interval."""

    def __init__(self, name: str, interval_s: float, round_: Callable[[], Awaitable[None]]) -> None:
        self.name = name
        self._interval_s = interval_s
        self._round = round_
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._waking = asyncio.Event()
        self.last_round_s: float | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self.name)

    def hurry(self) -> None:
        """The next round comes at once."""
        self._waking.set()

    async def stop(self) -> None:
        """Returns when it is over; a round in progress is waited for, because half a save is worse than none."""
        self._is_stopping = True
        self._waking.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while not await self._has_stopped_within(self._interval_s):
            try:
                await self._round()
            except Exception:
                logger.exception("the loop %s failed once; it goes on", self.name)
            self.last_round_s = asyncio.get_running_loop().time()

    async def _has_stopped_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._waking.wait()
        self._waking.clear()
        return self._is_stopping
