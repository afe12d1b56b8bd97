"""Runs a consumer anew whenever its code changes, by Django's autoreloader (`runconsumer GROUP --autoreload`).

As with `runserver`, a child process runs the code and ends with 3 when a file has changed. Before that the consumer
stops as always: offsets are committed, queues given back. A child that fails, as on a syntax error, is started again
after the next change.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from django.utils import autoreload

from consumer.engine.config import STOP_TIMEOUT_S
from consumer.engine.push_consumer import PushConsumer

LOOK_INTERVAL_S = 0.5
# Signals that follow each other within this time are one: Ctrl-C that is held down.
BURST_S = 1.0


class StoppableRun:
    """A consumer's run in a thread of its own, which another thread stops."""

    def __init__(self, make: Callable[[], PushConsumer]) -> None:
        self._make = make
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._ended = threading.Event()

    def run(self) -> None:
        try:
            asyncio.run(self._run())
        finally:
            self._ended.set()

    def stop(self) -> None:
        """Returns when the consumer has stopped, at once where none runs."""
        if self._loop is not None and not self._ended.is_set():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._ended.wait(STOP_TIMEOUT_S + 5)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        consumer = self._make()
        await consumer.start()
        await self._stop.wait()
        await consumer.stop()


def is_child() -> bool:
    return os.environ.get(autoreload.DJANGO_AUTORELOAD_ENV) == "true"


def run_child(make: Callable[[], PushConsumer]) -> None:
    """Runs until SIGINT or SIGTERM, or until a file has changed (SystemExit 3).

    Further signals do not cut the consumer's stop short. The handler takes no lock: see the rule in
    `remoting/shutdown_signal.py`.
    """
    run = StoppableRun(make)
    ended_s = -math.inf
    is_stopping = False

    def end(*_: object) -> None:
        nonlocal ended_s
        before_s, ended_s = ended_s, time.monotonic()
        # Code under way may catch what is raised here; then a later signal raises it again.
        if not is_stopping and ended_s - before_s > BURST_S:
            raise SystemExit(0)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    try:
        autoreload.start_django(autoreload.get_reloader(), run.run)
    finally:
        try:
            is_stopping = True
        finally:
            run.stop()
        if ended_s > -math.inf:  # also where a file had changed: else the parent would start the next child
            sys.exit(0)


def run_parent(say: Callable[[str], object]) -> None:
    """Starts children until one ends of its own accord. Ctrl-C reaches the child, which this process waits for."""
    is_interrupted = False

    def note(*_: object) -> None:
        nonlocal is_interrupted
        is_interrupted = True

    while True:
        # Not ignored, which the child would inherit.
        before = signal.signal(signal.SIGINT, note)
        try:
            code = autoreload.restart_with_reloader()
        finally:
            signal.signal(signal.SIGINT, before)
        if code <= 0 or is_interrupted:
            return
        say("it ended with an error; waiting for a change of the code, Ctrl-C ends")
        try:
            _wait_for_change()
        except KeyboardInterrupt:
            return


def _wait_for_change() -> None:
    reloader = autoreload.StatReloader()
    before = dict(reloader.snapshot_files())
    while dict(reloader.snapshot_files()) == before:
        time.sleep(LOOK_INTERVAL_S)
