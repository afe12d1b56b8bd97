"""Counts in memory what one member delivers, by topic and hour; a thread that writes takes it from there.

Callers: the event loop counts, one other thread reads and says what it has written. Topics are those of the member's
own listeners, so there are as many counts as it has listeners, times the hours that wait for the database.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from consumer.delivery.buckets import BUCKET_COUNT, bucket_of

HOUR_MS = 3_600_000
# While the database is away: what is older is dropped.
HOURS_WAITING_MAX = 3
# An hour that is written is kept for one more: what is counted of it after it was forgotten (the clock was set back, or
# the two threads read it to either side of the hour) would replace its row by next to nothing.
_KEPT_HOURS = 2


@dataclass(frozen=True, slots=True)
class HourCounts:
    """What was delivered of a topic in the hour that began at `hour_s`: how often each bucket. All of it, each time."""

    topic: str
    hour_s: int
    counts: tuple[tuple[int, int], ...]

    @property
    def total(self) -> int:
        return sum(count for _bucket, count in self.counts)


@dataclass(slots=True)
class DeliveryCounts:
    """Call it with what was delivered, on the event loop."""

    _hours: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    _written: dict[tuple[str, int], int] = field(default_factory=dict)

    def __call__(self, topic: str, now_ms: int, took_ms: Iterable[int]) -> None:
        key = (topic, now_ms // HOUR_MS)
        counts = self._hours.get(key)
        if counts is None:
            counts = self._hours[key] = [0] * BUCKET_COUNT
        for duration_ms in took_ms:
            counts[bucket_of(duration_ms)] += 1

    def changed(self, now_ms: int) -> list[HourCounts]:
        """Returns the hours of which more is known than was written; forgets those that are written and long over."""
        present = now_ms // HOUR_MS
        found = []
        for key, counts in list(self._hours.items()):
            topic, hour = key
            seen = HourCounts(
                topic, hour * HOUR_MS // 1000, tuple((n, one) for n, one in enumerate(list(counts)) if one)
            )
            if seen.total != self._written.get(key, 0) and hour > present - HOURS_WAITING_MAX:
                found.append(seen)
            elif hour <= present - _KEPT_HOURS:
                del self._hours[key]
                self._written.pop(key, None)
        return found

    def wrote(self, written: Iterable[HourCounts]) -> None:
        for one in written:
            self._written[one.topic, one.hour_s * 1000 // HOUR_MS] = one.total
