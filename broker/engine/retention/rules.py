"""When an old segment goes: RocketMQ's `fileReservedTime` and `deleteWhen`. Pure; times are ms since the epoch.

A segment's age counts from the moment it took its last message, which is the store timestamp of the first record behind
it. RocketMQ asks the file's modification time, which says the same until somebody copies or touches the file.
"""

from __future__ import annotations

import time
from collections.abc import Callable

HOUR_MS = 3_600_000
_HOURS = range(24)
# From any hour, each of the 24 comes within a day; one more where the clock skips one in spring.
_LOOK_AHEAD_HOURS = 26


def parse_hours(text: str) -> frozenset[int]:
    """`deleteWhen`: hours of the day, "04" or "04;16". Raises ValueError with what to give instead."""
    words = [word.strip() for word in text.split(";") if word.strip()]
    if not 0 < len(words) <= len(_HOURS) or not all(word.isdecimal() and int(word) in _HOURS for word in words):
        raise ValueError("give one or more hours of the day from 00 to 23, as in 04 or 04;16")
    return frozenset(int(word) for word in words)


def check_hours(text: str) -> str:
    """`text` as it is kept. Raises ValueError."""
    parse_hours(text)
    return text.strip()


def due_ms(
    closed_ms: int,
    reserved_ms: int,
    hours: frozenset[int],
    now_ms: int,
    local_time: Callable[[float], time.struct_time] = time.localtime,
) -> int | None:
    """When a segment closed at `closed_ms` is to be removed: once it is `reserved_ms` old, within one of `hours` of
    the broker's local time. An hour that has passed meanwhile is waited for again. None when it never comes.
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
