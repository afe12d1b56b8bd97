"""A cold shutdown of a worker whose pool is threads, which nothing can kill: the instances end at once by themselves.

Celery's own way (SIGQUIT, or a second Ctrl-C) would raise NotImplementedError while it terminates the first task, and
the process would then wait for ever for threads that nobody told.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

from consumer.hosting.instance import StopSignals

Handler = Callable[[int, FrameType | None], None]


def end_cold(signals: StopSignals) -> Handler:
    """Returns a signal handler that tells the instances not to be handed over, and then does what SIGTERM does."""
    warm = signal.getsignal(signal.SIGTERM)

    def handle(_number: int, frame: FrameType | None) -> None:
        signals.cold.set()
        signals.shutdown.set()
        if callable(warm):
            warm(signal.SIGTERM, frame)

    return handle
