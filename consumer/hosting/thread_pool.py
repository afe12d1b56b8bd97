"""Ctrl-C and SIGQUIT for a worker whose pool is threads, which nothing can kill: its instances end by themselves.

Celery's own cold shutdown (SIGQUIT, or a second Ctrl-C) would raise NotImplementedError while it terminates the first
task, and the process would then wait for ever for threads that nobody told. Its handler of the first Ctrl-C installs
that of the second one before it tells anybody of the shutdown, so a second one that comes at once would still find it:
hence the first one is handled here, too.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType

from consumer.hosting.instance import StopSignals

Handler = Callable[[int, FrameType | None], None]

# As Celery says it. Written past Python's buffers, which a signal handler must not touch.
AGAIN = b"\nworker: Hitting Ctrl+C again will terminate all running tasks!\n"
STDERR = 2


def end_without_killing(signals: StopSignals) -> None:
    """Installs the handlers: one Ctrl-C ends as SIGTERM does, a second one and SIGQUIT without handing over."""
    cold = _end_cold(signals)
    signal.signal(signal.SIGQUIT, cold)
    signal.signal(signal.SIGINT, _end_warm_first(cold))


def _end_cold(signals: StopSignals) -> Handler:
    """Returns a handler that tells the instances not to be handed over, and then does what SIGTERM does."""
    warm = signal.getsignal(signal.SIGTERM)

    def handle(_number: int, frame: FrameType | None) -> None:
        signals.cold.set()
        signals.shutdown.set()
        if callable(warm):
            warm(signal.SIGTERM, frame)

    return handle


def _end_warm_first(cold: Handler) -> Handler:
    """Returns a handler that does what SIGTERM does, once `cold` is there for the next Ctrl-C."""
    warm = signal.getsignal(signal.SIGTERM)

    def handle(_number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, cold)
        os.write(STDERR, AGAIN)
        if callable(warm):
            warm(signal.SIGTERM, frame)

    return handle
