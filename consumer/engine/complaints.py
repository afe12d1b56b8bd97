"""The same trouble said once, then again at most every ten seconds: an operator sees it lasts, and can read the log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

REPEAT_AFTER_S = 10.0
# Subjects remembered; more means that subjects are made of something endless, and the oldest go.
SUBJECTS_MAX = 1000


class Complaints:
    """`clock` in seconds, monotonic."""

    def __init__(self, logger: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._clock = clock
        self._said_s: dict[str, float] = {}

    def warn(self, subject: str, text: str) -> None:
        now_s = self._clock()
        said_s = self._said_s.pop(subject, None)
        if said_s is not None and now_s - said_s < REPEAT_AFTER_S:
            self._said_s[subject] = said_s
            return
        if len(self._said_s) >= SUBJECTS_MAX:
            del self._said_s[next(iter(self._said_s))]
        self._said_s[subject] = now_s
        self._logger.warning("%s%s", text, "" if said_s is None else " (still)")

    def settled(self, subject: str) -> None:
        """It works again; the next trouble is new."""
        self._said_s.pop(subject, None)
