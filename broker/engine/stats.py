"""Numbers of messages stored and given out: of the last minute, hour and day, and since midnight (RocketMQ's
`BrokerStatsManager` and `BrokerStats`).

Counts lie in buckets of ten seconds, ten minutes and one hour; RocketMQ's `StatsItem` samples as coarsely.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable
from enum import Enum
from typing import Generic, TypeVar

from broker.engine.store.values import Appended
from remoting.wire.names import is_system_topic

BUCKET_S = 10
BUCKETS = 6
# Ten minutes of buckets, the one that is counted in, and the one in which the ten minutes begin.
TOTALS_KEPT = 62
# How often the date is checked, so that a midnight is noticed in time.
MIDNIGHT_CHECK_INTERVAL_S = 30.0

# Upper ends of RocketMQ's ranges of durations, in ms, and what it calls them.
RANGES_MS = (0, 9, 49, 99, 199, 499, 999, 1999, 2999, 3999, 4999, 9999)
RANGE_NAMES = (
    "<=0ms",
    "0~10ms",
    "10~50ms",
    "50~100ms",
    "100~200ms",
    "200~500ms",
    "500ms~1s",
    "1~2s",
    "2~3s",
    "3~4s",
    "4~5s",
    "5~10s",
    "10s~",
)

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
    """Counts per key. `clock`: seconds of a clock that never jumps. Keys not counted for a day are forgotten.

    `total`: all that was ever counted.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started_s = clock()
        self._buckets: dict[int, dict[K, int]] = {}
        # Where the buckets of a finished minute are added up: window → bucket → counts.
        self._older: dict[Window, dict[int, dict[K, int]]] = {Window.HOUR: {}, Window.DAY: {}}
        # (bucket of ten seconds, `total` before it), of the last ten minutes.
        self._totals: deque[tuple[int, int]] = deque(maxlen=TOTALS_KEPT)
        self.total = 0

    def count(self, key: K, number: int = 1) -> None:
        now = int(self._clock() // BUCKET_S)
        bucket = self._buckets.get(now)
        if bucket is None:
            self._put_away(now)
            bucket = self._buckets[now] = {}
            self._totals.append((now, self.total))
        bucket[key] = bucket.get(key, 0) + number
        self.total += number

    def _put_away(self, now: int) -> None:
        """Adds buckets older than a minute to those of the hour and the day; drops what is older than these."""
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
        """Returns the rate over the last minute, or since the start where that is younger."""
        now_s = self._clock()
        counted = self._last_minute(now_s, lambda bucket: bucket.get(key, 0))
        return self._over(counted, Window.MINUTE, now_s)

    def recent_per_second(self, seconds: int) -> float:
        """Returns the rate of all keys together over the last `seconds`, at most 600, up to a bucket of ten seconds."""
        now_s = self._clock()
        first = int((now_s - seconds) // BUCKET_S)
        before = next((total for bucket, total in self._totals if bucket >= first), self.total)
        window_s = min(now_s - self._started_s, now_s - first * BUCKET_S)
        return (self.total - before) / max(window_s, 1.0)

    def sum_of(self, key: K, window: Window) -> int:
        return self._sum(window, lambda bucket: bucket.get(key, 0))

    def sum_of_all(self, window: Window) -> int:
        return self._sum(window, lambda bucket: sum(bucket.values()))

    def rate_of(self, counted: int, window: Window) -> float:
        """Returns the rate per second of `counted` in the last `window`."""
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


class DailyTotals:
    """Remembers a total at the last two midnights: tools show "today" and "yesterday" (RocketMQ's `BrokerStats`).

    `total()`: all that was counted since the start. `clock`: ms since the epoch; days are those of the machine.
    """

    def __init__(self, total: Callable[[], int], clock: Callable[[], int]) -> None:
        self._total = total
        self._clock = clock
        self._day = self._today()
        self.total_at_yesterday_midnight = 0
        self.total_at_midnight = 0

    def roll(self) -> None:
        """Moves the totals on when a day has begun since the last call."""
        today = self._today()
        if today != self._day:
            self._day = today
            self.total_at_yesterday_midnight, self.total_at_midnight = self.total_at_midnight, self._total()

    @property
    def total_now(self) -> int:
        return self._total()

    def _today(self) -> tuple[int, int]:
        moment = time.localtime(self._clock() / 1000)
        return moment.tm_year, moment.tm_yday


class Durations:
    """How long something took each time: a count for each range of RocketMQ's (`StoreStatsService`), and the longest.

    A share of the durations (the 99th percentile) is known to a power of two.
    """

    def __init__(self) -> None:
        self._ranges = [0] * (len(RANGES_MS) + 1)
        self._powers = [0] * 40
        self.max_ms = 0.0

    def add(self, seconds: float, number: int = 1) -> None:
        """Counts `number` cases that took so long each."""
        ms = seconds * 1000
        self._ranges[bisect_left(RANGES_MS, int(ms))] += number
        self._powers[min(int(ms * 1000).bit_length(), len(self._powers) - 1)] += number
        if ms > self.max_ms:
            self.max_ms = ms

    @property
    def ranges(self) -> list[int]:
        """Returns the counts: up to and with each of `RANGES_MS`, and above the last."""
        return list(self._ranges)

    def percentile_ms(self, share: float) -> float:
        """Returns a duration that `share` of the cases did not exceed, at most twice too long; 0.0 without any."""
        left = share * sum(self._powers)
        for power, number in enumerate(self._powers):
            left -= number
            if number and left <= 0:
                return min((1 << power) / 1000, self.max_ms)
        return 0.0


class BrokerStats:
    """Counts messages stored (`put`, by topic), given out (`got`, by topic and group). `clock`: ms since the epoch.

    `put_bytes`: their sizes in the log. `put_failures`: messages that were not stored. `put_times`, `get_times`: of
    writes, one for the messages of a read, and of reads. `found`, `missed`: pulls with and without messages.
    `timers_delivered`: messages that were delivered at their own time. `seconds`: of a clock that never jumps.
    """

    def __init__(
        self,
        clock: Callable[[], int],
        seconds: Callable[[], float] = time.monotonic,
        *,
        own_topics: Collection[str] = (),
    ) -> None:
        """`own_topics`: those of the broker's own whose names do not tell so; messages in them do not count as traffic
        of a day, as in RocketMQ."""
        self._own_topics = own_topics
        self._put_total = self._got_total = 0
        self.put: Rates[str] = Rates(seconds)
        self.got: Rates[tuple[str, str]] = Rates(seconds)
        self.found: Rates[None] = Rates(seconds)
        self.missed: Rates[None] = Rates(seconds)
        self.timers_delivered: Rates[None] = Rates(seconds)
        self.put_bytes = 0
        self.put_failures = 0
        self.put_times = Durations()
        self.get_times = Durations()
        self.put_daily = DailyTotals(lambda: self._put_total, clock)
        self.got_daily = DailyTotals(lambda: self._got_total, clock)

    def appended(self, appended: list[Appended]) -> None:
        """Counts messages that were stored."""
        for topic, number in Counter([one.topic for one in appended]).items():
            self.put.count(topic, number)
            self._put_total += number * self._is_traffic(topic)
        self.put_bytes += sum([one.total_bytes for one in appended])

    def given_out(self, topic: str, group: str, number: int) -> None:
        """Counts messages that a pull is answered with."""
        self.got.count((topic, group), number)
        self._got_total += number * self._is_traffic(topic)

    def _is_traffic(self, topic: str) -> bool:
        return topic not in self._own_topics and not is_system_topic(topic)

    async def roll_daily_counters(self) -> None:
        self.put_daily.roll()
        self.got_daily.roll()
