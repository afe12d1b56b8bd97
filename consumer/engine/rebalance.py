"""Which queues a member takes and releases in one rebalance (Java `RebalanceImpl`), and when the next one is due. Pure.

Notifications coalesce: a rebalance that was woken by one starts at least `WOKEN_INTERVAL_MS` after the one before, so
the first notification acts at once, and any number of them cost four rebalances a second. Java waits one second:
so long a lost member's queues would stay unread if another member had joined or left just before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from consumer.engine.process_queue import ProcessQueue
from remoting.wire.bodies.message_queue import MessageQueue

INTERVAL_MS = 20_000
WOKEN_INTERVAL_MS = 250
UNBALANCED_INTERVAL_MS_MIN = 1000
UNBALANCED_INTERVAL_MS_MAX = 5000
# A queue that was not pulled for so long has lost its pull loop; it is taken again.
PULL_IDLE_MS_MAX = 120_000


@dataclass(frozen=True, slots=True)
class QueueChanges:
    """In the queues' order. `stuck` are still allocated to this member: released and taken again."""

    add: tuple[MessageQueue, ...]
    remove: tuple[MessageQueue, ...]
    stuck: tuple[MessageQueue, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.add or self.remove or self.stuck)


def decide(allocated: Iterable[MessageQueue], owned: Mapping[MessageQueue, ProcessQueue], now_ms: int) -> QueueChanges:
    """Compares the queues allocated to this member with those it owns. A dropped queue of both is taken again."""
    allocated = frozenset(allocated)
    lost = [queue for queue in owned if queue not in allocated]
    stuck = [queue for queue in owned if queue in allocated and _is_stuck(owned[queue], now_ms)]
    new = [queue for queue in allocated if queue not in owned]
    return QueueChanges(add=tuple(sorted([*new, *stuck])), remove=tuple(sorted(lost)), stuck=tuple(sorted(stuck)))


def _is_stuck(process_queue: ProcessQueue, now_ms: int) -> bool:
    return process_queue.is_dropped or now_ms - process_queue.last_pull_ms > PULL_IDLE_MS_MAX


@dataclass(slots=True)
class RebalanceTimer:
    """When the next rebalance is due. Times in ms of any one clock.

    Caller: the rebalance loop. `unbalanced_count` counts rebalances in a row that were not complete: they are repeated
    after 1, 2, 4, 5, 5 … s. Java waits 20 s for a route that is not known yet, which delays a new group's first retries
    and the first messages of a new topic.
    """

    last_ms: int | None = None
    unbalanced_count: int = 0

    def rebalanced(self, now_ms: int, *, is_balanced: bool) -> None:
        self.last_ms = now_ms
        self.unbalanced_count = 0 if is_balanced else self.unbalanced_count + 1

    def wait_ms(self, now_ms: int, *, is_woken: bool) -> int:
        """Returns how long to wait from now on; 0 or less when the rebalance is due."""
        if self.last_ms is None:
            return 0
        return self.last_ms + (WOKEN_INTERVAL_MS if is_woken else self._interval_ms()) - now_ms

    def _interval_ms(self) -> int:
        if not self.unbalanced_count:
            return INTERVAL_MS
        return min(UNBALANCED_INTERVAL_MS_MAX, UNBALANCED_INTERVAL_MS_MIN << min(self.unbalanced_count - 1, 10))
