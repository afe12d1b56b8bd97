"""An event loop in a thread of its own, for code that has none: scripts, Spark, Django views."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

JOIN_TIMEOUT_S = 3.0


class EventLoopThread:
    """Starts with the first call; `close()` ends it. Calls may come from any thread; `run` and `call` not from a loop.

    A process that was forked from this one has no such thread: there every call raises RuntimeError.
    """

    def __init__(self, name: str, instead: str = "use its async twin in async code") -> None:
        """Takes the thread's name, and what the error of a call from an event loop advises."""
        self._name = name
        self._instead = instead
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Returns the coroutine's result; it is cancelled when the caller is interrupted."""
        try:
            self._refuse_on_event_loop()
        except BaseException:
            coroutine.close()
            raise
        future = self.submit(coroutine)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Starts the coroutine and returns at once; for async code, that awaits `asyncio.wrap_future` of the result."""
        try:
            self._refuse_after_fork()
            # `close()` cancels what was submitted before it, so nothing may come between the loop and its use.
            with self._lock:
                return asyncio.run_coroutine_threadsafe(coroutine, self._running_loop())
        except BaseException:
            coroutine.close()
            raise

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Returns the result of a plain function that must run on the loop."""

        async def calling() -> T:
            return function(*arguments)

        return self.run(calling())

    def close(self) -> None:
        """Cancels what runs on the loop, ends it and its thread; the next call would start another."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None and os.getpid() == self._pid:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(JOIN_TIMEOUT_S)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
            self._loop = runner.get_loop()
            self._thread = threading.Thread(target=_run, args=(runner,), name=self._name, daemon=True)
            self._thread.start()
        return self._loop

    def _refuse_after_fork(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(f"{self._name} was made before a fork: make it in the process that uses it")

    def _refuse_on_event_loop(self) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        raise RuntimeError(f"{self._name} would block this event loop: {self._instead}")


def _run(runner: asyncio.Runner) -> None:
    """Runs until `close()`; then the runner cancels all tasks, so that nobody waits for ever for the result of one."""
    with runner:
        runner.get_loop().run_forever()
