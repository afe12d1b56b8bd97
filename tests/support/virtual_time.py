"""An event loop whose time is a number: waiting costs nothing, and every run of the same steps is the same run.

`VirtualTime` outlives its loops: a killed process is a loop that is dropped, and the next one goes on at its time.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any

START_MS = 1_700_000_000_000


class VirtualTime:
    """`now_s` is what loops see; `wall_ms` the machine's clock, which `jump_ms` sets ahead or back."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.jump_ms = 0

    def wall_ms(self) -> int:
        return START_MS + round(self.now_s * 1000) + self.jump_ms


class _Selector(selectors.DefaultSelector):
    """Nothing ever arrives from outside: a wait is over at once, and time has passed."""

    def __init__(self, time: VirtualTime) -> None:
        super().__init__()
        self._time = time

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise AssertionError("everybody waits for something that cannot come")
        if not ready and timeout is not None and timeout > 0:
            self._time.now_s += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """What would run in a thread runs at once."""

    def __init__(self, time: VirtualTime) -> None:
        super().__init__(_Selector(time))
        self._virtual_time = time

    def time(self) -> float:
        return self._virtual_time.now_s

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.run_until_complete(coroutine)

    def pass_ms(self, by_ms: int) -> None:
        """Everything that falls due meanwhile happens."""
        self.run(asyncio.sleep(by_ms / 1000))
        self.settle()

    def settle(self) -> None:
        """What was begun in this moment is finished, as far as it needs no time."""

        async def turns() -> None:
            for _ in range(10):
                await asyncio.sleep(0)

        self.run(turns())

    def drop(self) -> None:
        """What a kill leaves of a loop: nobody is told, no task unwinds."""
        for task in asyncio.all_tasks(self):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        self.close()
