"""The one place where the engine looks at the time of day."""

from __future__ import annotations

import time
from collections.abc import Callable

# ms since the epoch.
Clock = Callable[[], int]


def now_ms() -> int:
    return time.time_ns() // 1_000_000
