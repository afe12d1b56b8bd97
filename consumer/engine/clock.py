"""The wall clock of the consumer engine: the only module of it that reads one."""

from __future__ import annotations

import time
from collections.abc import Callable

# ms since the epoch.
Clock = Callable[[], int]


def now_ms() -> int:
    return time.time_ns() // 1_000_000
