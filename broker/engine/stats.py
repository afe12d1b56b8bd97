"""Counts of the last minute, hour and day (RocketMQ's `StatsItem` samples as coarsely): in buckets of ten seconds,
ten minutes and one hour."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from enum import Enum
from typing import Generic, TypeVar

BUCKET_S = 10
BUCKETS = 6

K = TypeVar("K", bound=Hashable)


class Window(Enum):
    """(seconds of a bucket, number of buckets)."""

    MINUTE = (BUCKET_S, BUCKETS)
    HOUR = (600, 6)
    DAY = (3_600, 24)

    @property
    def seconds(self) -> int:
        return self.value[0] * self.value[1]


class Rates(Generic[K]):
    """`clock`: seconds of a clock that never jumps. Keys that were not counted for a day are forgotten.

    `total`: all that was ever counted.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started_s = clock()
        self._buckets: dict[int, dict[K, int]] = {}
        # Where the buckets of a finished minute are added up: window → bucket → counts.
        self._older: dict[Window, dict[int, dict[K, int]]] = {Window.HOUR: {}, Window.DAY: {}}
        self.total = 0

    def count(self, key: K, number: int = 1) -> None:
        now = int(self._clock() // BUCKET_S)
        bucket = self._buckets.get(now)
        if bucket is None:
            self._put_away(now)
            bucket = self._buckets[now] = {}
        bucket[key] = bucket.get(key, 0) + number
        self.total += number

    def _put_away(self, now: int) -> None:
        """Buckets older than a minute go into those of the hour and the day; what is older than these goes."""
        for old in [number for number in self._buckets if number <= now - BUCKETS]:
            counts = self._buckets.pop(old)
            for window, buckets in self._older.items():
                sums = buckets.setdefault(old * BUCKET_S // window.value[0], {})
                for key, number in counts.items():
                    sums[key] = sums.get(key, 0) + number
        for window, buckets in self._older.items():
            for old in [number for number in buckets if number <= _now_in(window, now * BUCKET_S) - window.value[1]]:
                del buckets[old]

    def per_second(self, key: K) -> float:
        """Over the last minute, or since the start where that is younger."""
        now_s = self._clock()
        counted = self._last_minute(now_s, lambda bucket: bucket.get(key, 0))
        return self._over(counted, Window.MINUTE, now_s)

    def all_per_second(self, window: Window = Window.MINUTE) -> float:
        """Of all keys together."""
        return self._over(self._sum(window, lambda bucket: sum(bucket.values())), window, self._clock())

    def sum_of(self, key: K, window: Window) -> int:
        return self._sum(window, lambda bucket: bucket.get(key, 0))

    def sum_of_all(self, window: Window) -> int:
        return self._sum(window, lambda bucket: sum(bucket.values()))

    def rate_of(self, counted: int, window: Window) -> float:
        """`counted` in the last `window`, a second."""
        return self._over(counted, window, self._clock())

    def _sum(self, window: Window, of: Callable[[dict[K, int]], int]) -> int:
        now_s = self._clock()
        self._put_away(int(now_s // BUCKET_S))
        oldest = _now_in(window, now_s) - window.value[1]
        older = sum(of(bucket) for number, bucket in self._older.get(window, {}).items() if number > oldest)
        return older + self._last_minute(now_s, of)

    def _last_minute(self, now_s: float, of: Callable[[dict[K, int]], int]) -> int:
        oldest = int(now_s // BUCKET_S) - BUCKETS
        return sum(of(bucket) for number, bucket in self._buckets.items() if number > oldest)

    def _over(self, counted: int, window: Window, now_s: float) -> float:
        bucket_s, buckets = window.value
        window_s = min(now_s - self._started_s, (buckets - 1) * bucket_s + now_s % bucket_s)
        return counted / window_s if window_s >= 1 else float(counted)


def _now_in(window: Window, now_s: float) -> int:
    return int(now_s // window.value[0])
