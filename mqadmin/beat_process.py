"""How the process of beat ends by a signal."""

from __future__ import annotations

import signal
from typing import Any

from celery.apps.beat import Beat

# What beat does at its end, a schedule to be written, takes milliseconds. An exception that a signal raises gets lost
# where Python lets none out, as in a finalizer: then the kernel ends the process.
END_WITHIN_S = 8


class BeatProcess(Beat):
    """Beat without Celery's handler of signals, which writes the schedule to the database inside the handler.

    There it may wait for a lock that the very frame holds which it interrupted, and from its installation until beat
    has read its schedule it may leave beat running. Beat writes the schedule on its way out anyway.
    """

    def install_sync_handler(self, *_: Any) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)


def stop(*_: object) -> None:
    """Ends the process in order; further signals do not interrupt that."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    signal.alarm(END_WITHIN_S)
    raise SystemExit
