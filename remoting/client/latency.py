"""Which brokers a producer avoids because they answered slowly or not at all (Java `MQFaultStrategy`). Pure.

Off unless a producer is told to. Each answer's time says by a table for how long its broker is not chosen; a failure
counts as 10 s. When all brokers are avoided, one that could be reached is chosen, else any. No broker is probed
meanwhile (Java's detector, off by default): the first send after the time is the probe.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from remoting.wire.bodies.message_queue import MessageQueue

# From an answer's time on (ms) → for how long its broker is not chosen (ms).
LATENCIES_MS = (50, 100, 550, 1800, 3000, 5000, 15_000)
NOT_AVAILABLE_MS = (0, 0, 2000, 5000, 6000, 10_000, 30_000)
# What a failure counts as.
FAILED_LATENCY_MS = 10_000


def not_available_ms(latency_ms: float) -> int:
    """Returns for how long a broker that answered after `latency_ms` is not chosen."""
    index = bisect_right(LATENCIES_MS, latency_ms) - 1
    return NOT_AVAILABLE_MS[index] if index >= 0 else 0


class BrokerLatencies:
    """Times in seconds of any one clock. Caller: one producer."""

    def __init__(self) -> None:
        self._available_at_s: dict[str, float] = {}
        self._refused: set[str] = set()

    def answered(self, broker_name: str, latency_s: float, now_s: float) -> None:
        """Counts the time of an answer that was no refusal."""
        self._refused.discard(broker_name)
        self._avoid(broker_name, not_available_ms(latency_s * 1000), now_s)

    def failed(self, broker_name: str, now_s: float, *, is_refusal: bool) -> None:
        """Counts an error; a broker that refused is chosen after those that were merely slow."""
        if is_refusal:
            self._refused.add(broker_name)
        self._avoid(broker_name, not_available_ms(FAILED_LATENCY_MS), now_s)

    def choose(self, queues: Sequence[MessageQueue], avoid_broker: str | None, now_s: float) -> Sequence[MessageQueue]:
        """Returns those of `queues` to pick from: of available brokers, else of reachable ones, else all."""
        tests: tuple[Callable[[str], bool], ...] = (
            lambda name: now_s >= self._available_at_s.get(name, now_s),
            lambda name: name not in self._refused,
        )
        for test in tests:
            chosen = [queue for queue in queues if queue.broker_name != avoid_broker and test(queue.broker_name)]
            if chosen:
                return chosen
        return queues

    def _avoid(self, broker_name: str, duration_ms: int, now_s: float) -> None:
        if duration_ms:
            self._available_at_s[broker_name] = now_s + duration_ms / 1000
        else:
            self._available_at_s.pop(broker_name, None)
