"""What a member must take and give up: pure decisions of one rebalance round (Java `RebalanceImpl`).

And when the next round is: notifications coalesce, a woken round comes at least `WOKEN_GAP_MS` after the one before,
so the first notification after a quiet time acts at once and a storm of them costs four rounds a second. Java's gap is
a second, which a lost member's queues would wait for when somebody else came or went just before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from consumer.engine.process_queue import ProcessQueue
from remoting.wire.bodies.message_queue import MessageQueue

INTERVAL_MS = 20_000
WOKEN_GAP_MS = 250
UNBALANCED_INTERVAL_MS_MIN = 1000
UNBALANCED_INTERVAL_MS_MAX = 5000
# A queue that is owned but was not pulled for so long has lost its loop; it is taken anew.
PULL_IDLE_MS_MAX = 120_000


@dataclass(frozen=True, slots=True)
class Changes:
    """In the queues' order. `stuck` are wanted still: given up and taken again."""

    add: tuple[MessageQueue, ...]
    remove: tuple[MessageQueue, ...]
    stuck: tuple[MessageQueue, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.add or self.remove or self.stuck)


def decide(wanted: Iterable[MessageQueue], owned: Mapping[MessageQueue, ProcessQueue], now_ms: int) -> Changes:
    """From what is owned to what is wanted. A dropped queue that is wanted is taken anew."""
    wanted = frozenset(wanted)
    lost = [queue for queue in owned if queue not in wanted]
    stuck = [queue for queue in owned if queue in wanted and _is_stuck(owned[queue], now_ms)]
    new = [queue for queue in wanted if queue not in owned]
    return Changes(add=tuple(sorted([*new, *stuck])), remove=tuple(sorted(lost)), stuck=tuple(sorted(stuck)))


def _is_stuck(process_queue: ProcessQueue, now_ms: int) -> bool:
    return process_queue.is_dropped or now_ms - process_queue.last_pull_ms > PULL_IDLE_MS_MAX


@dataclass(slots=True)
class RoundTimer:
    """When the next round is due. Times in ms of any one clock.

    Caller: the rebalance loop. `unbalanced_count` counts rounds in a row that could not do all they should: they come
    again after 1, 2, 4, 5, 5 … s. Java waits 20 s for a route that is not known yet, which delays a new group's first
    retries, and the first messages of a new topic.
    """

    last_ms: int | None = None
    unbalanced_count: int = 0

    def round_done(self, now_ms: int, *, is_balanced: bool) -> None:
        self.last_ms = now_ms
        self.unbalanced_count = 0 if is_balanced else self.unbalanced_count + 1

    def wait_ms(self, now_ms: int, *, is_woken: bool) -> int:
        """How long to wait from now on; 0 or less: the round is due."""
        if self.last_ms is None:
            return 0
        return self.last_ms + (WOKEN_GAP_MS if is_woken else self._interval_ms()) - now_ms

    def _interval_ms(self) -> int:
        if not self.unbalanced_count:
            return INTERVAL_MS
        return min(UNBALANCED_INTERVAL_MS_MAX, UNBALANCED_INTERVAL_MS_MIN << min(self.unbalanced_count - 1, 10))
