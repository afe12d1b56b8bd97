"""Rates over the last minute, counted in buckets of ten seconds (RocketMQ's `StatsItem` samples as coarsely)."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

BUCKET_S = 10
BUCKETS = 6

K = TypeVar("K", bound=Hashable)


class Rates(Generic[K]):
    """`clock`: seconds of a clock that never jumps. Keys that were not counted for a minute are forgotten."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started_s = clock()
        self._buckets: dict[int, dict[K, int]] = {}

    def count(self, key: K, number: int = 1) -> None:
        now = int(self._clock() // BUCKET_S)
        bucket = self._buckets.get(now)
        if bucket is None:
            for old in [number for number in self._buckets if number <= now - BUCKETS]:
                del self._buckets[old]
            bucket = self._buckets[now] = {}
        bucket[key] = bucket.get(key, 0) + number

    def per_second(self, key: K) -> float:
        """Over the last minute, or since the start where that is younger."""
        now_s = self._clock()
        oldest = int(now_s // BUCKET_S) - BUCKETS
        counted = sum(bucket.get(key, 0) for number, bucket in self._buckets.items() if number > oldest)
        window_s = min(now_s - self._started_s, (BUCKETS - 1) * BUCKET_S + now_s % BUCKET_S)
        return counted / window_s if window_s >= 1 else float(counted)
