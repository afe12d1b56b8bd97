"""Computes when an old segment is removed, by RocketMQ's `fileReservedTime` and `deleteWhen`.

Pure functions; times are ms since the epoch.

A segment's age counts from the time at which it was full: the store timestamp of the first record after it. RocketMQ
uses the file's modification time, which is the same unless the file was copied or touched.
"""

from __future__ import annotations

import time
from collections.abc import Callable

HOUR_MS = 3_600_000
_HOURS = range(24)
# The current hour and the next 24 contain every hour of the day; one more because the clock skips an hour in spring.
_LOOK_AHEAD_HOURS = 26


def parse_hours(text: str) -> frozenset[int]:
    """Parses `deleteWhen`: hours of the day, "04" or "04;16". Raises ValueError, whose text names the format."""
    words = [word.strip() for word in text.split(";") if word.strip()]
    if not 0 < len(words) <= len(_HOURS) or not all(word.isdecimal() and int(word) in _HOURS for word in words):
        raise ValueError("give one or more hours of the day from 00 to 23, as in 04 or 04;16")
    return frozenset(int(word) for word in words)


def check_hours(text: str) -> str:
    """Returns `deleteWhen` as it is stored in the settings. Raises ValueError when it is invalid."""
    parse_hours(text)
    return text.strip()


def due_ms(
    closed_ms: int,
    reserved_ms: int,
    hours: frozenset[int],
    now_ms: int,
    local_time: Callable[[float], time.struct_time] = time.localtime,
) -> int | None:
    """Returns when a segment closed at `closed_ms` is to be removed, None for never.

    That is once it is `reserved_ms` old, within one of `hours` of the broker's local time. If such an hour has passed
    without the removal, the next one counts; within one that has begun, the result may be before `now_ms`.
    """
    expired_ms = closed_ms + reserved_ms
    hour_ms = max(expired_ms, now_ms)
    for _ in range(_LOOK_AHEAD_HOURS):
        local = local_time(hour_ms / 1000)
        if local.tm_hour in hours:
            return max(expired_ms, _hour_start(hour_ms, local))
        hour_ms = _hour_start(hour_ms, local) + HOUR_MS
    return None


def _hour_start(moment_ms: int, local: time.struct_time) -> int:
    return moment_ms - (local.tm_min * 60 + local.tm_sec) * 1000 - moment_ms % 1000
