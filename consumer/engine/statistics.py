"""Rates of one consumer by topic, for its running info (Java `ConsumerStatsManager`).

Kept in buckets of ten seconds for the last hour: rates and durations are those of the last minute, failures those of
the last hour.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from consumer.engine.clock import Clock
from consumer.engine.process_queue import CachedMessage
from remoting.wire.bodies.running_info import ConsumeStatus

BUCKET_MS = 10_000
HOUR_BUCKETS = 360
MINUTE_BUCKETS = 6
# Called on the event loop with topic, present time and how long messages took: it must not block, nor raise.
RecordDelivery = Callable[[str, int, Sequence[int]], None]


class _Bucket:
    __slots__ = ("calls", "consume_ms", "failed", "number", "ok", "pull_ms", "pulled", "pulls")

    def __init__(self, number: int) -> None:
        self.number = number
        self.calls = self.ok = self.failed = self.pulled = self.pulls = 0
        self.consume_ms = self.pull_ms = 0.0


class Statistics:
    def __init__(self, clock: Clock, record_delivery: RecordDelivery | None = None) -> None:
        self._clock = clock
        self._record_delivery = record_delivery
        self._topics: dict[str, deque[_Bucket]] = {}

    def consumed(self, topic: str, duration_ms: float, *, calls: int = 1, ok: int = 0, failed: int = 0) -> None:
        """Counts `calls` of a listener that took `duration_ms` together; `ok` and `failed` are messages."""
        bucket = self._bucket(topic)
        bucket.calls += calls
        bucket.consume_ms += duration_ms
        bucket.ok += ok
        bucket.failed += failed

    def delivered(self, topic: str, messages: Sequence[CachedMessage]) -> None:
        """Tells how long messages of an original topic took that are consumed now.

        That is since they were stored; of a retry, since it was born: when it was stored first is not kept with it.
        """
        if self._record_delivery is None or not messages:
            return
        now_ms = self._clock()
        self._record_delivery(
            topic,
            now_ms,
            [
                now_ms - (one.stored.born_timestamp_ms if one.stored.reconsume_times else one.stored.store_timestamp_ms)
                for one in messages
            ],
        )

    def pulled(self, topic: str, count: int, duration_ms: float) -> None:
        bucket = self._bucket(topic)
        bucket.pulled += count
        bucket.pulls += 1
        bucket.pull_ms += duration_ms

    def status(self, topic: str) -> ConsumeStatus:
        now = self._clock() // BUCKET_MS
        hour = [bucket for bucket in self._topics.get(topic, ()) if bucket.number > now - HOUR_BUCKETS]
        minute = [bucket for bucket in hour if bucket.number > now - MINUTE_BUCKETS]
        seconds = MINUTE_BUCKETS * BUCKET_MS / 1000
        ok, failed = sum(bucket.ok for bucket in minute), sum(bucket.failed for bucket in minute)
        calls, pulls = sum(bucket.calls for bucket in minute), sum(bucket.pulls for bucket in minute)
        return ConsumeStatus(
            consume_failed_msgs=sum(bucket.failed for bucket in hour),
            consume_failed_tps=failed / seconds,
            consume_ok_tps=ok / seconds,
            consume_rt=sum(bucket.consume_ms for bucket in minute) / max(1, calls),
            pull_rt=sum(bucket.pull_ms for bucket in minute) / max(1, pulls),
            pull_tps=sum(bucket.pulled for bucket in minute) / seconds,
        )

    def _bucket(self, topic: str) -> _Bucket:
        buckets = self._topics.get(topic)
        if buckets is None:
            buckets = self._topics[topic] = deque(maxlen=HOUR_BUCKETS)
        number = self._clock() // BUCKET_MS
        if not buckets or buckets[-1].number != number:
            buckets.append(_Bucket(number))
        return buckets[-1]
