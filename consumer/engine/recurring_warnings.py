"""Logs a warning that recurs once, then again at most every ten seconds: the log stays readable while trouble lasts."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

REPEAT_AFTER_S = 10.0
# Keys remembered; the oldest go, should a caller make keys without end.
KEYS_MAX = 1000


class RecurringWarnings:
    """`clock` returns monotonic seconds."""

    def __init__(self, logger: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._clock = clock
        self._logged_s: dict[str, float] = {}

    def __len__(self) -> int:
        """Returns the number of keys remembered."""
        return len(self._logged_s)

    def warn(self, key: str, text: str) -> None:
        """Logs `text`, unless a warning of the same `key` was logged a short time ago."""
        now_s = self._clock()
        logged_s = self._logged_s.pop(key, None)
        if logged_s is not None and now_s - logged_s < REPEAT_AFTER_S:
            self._logged_s[key] = logged_s
            return
        if len(self._logged_s) >= KEYS_MAX:
            del self._logged_s[next(iter(self._logged_s))]
        self._logged_s[key] = now_s
        self._logger.warning("%s%s", text, "" if logged_s is None else " (still)")

    def resolved(self, key: str) -> None:
        """Forgets `key`: the next warning of it is logged at once."""
        self._logged_s.pop(key, None)
