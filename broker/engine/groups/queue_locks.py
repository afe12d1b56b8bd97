"""Queue locks of ordered consumption (RocketMQ's `RebalanceLockManager`): one member alone consumes a queue of a group.

A lock is granted when it is free, when it is one's own already (which refreshes it), or when its holder has not
refreshed it for more than `LOCK_LIFE_MS`. Unlocking takes away one's own only. The client id is the whole identity: a
closed connection frees nothing, because its client may be consuming still. Locks are kept in memory alone: after a
restart all members lock again. Groups and queues need not be known, as on Apache RocketMQ.

Within a group, locks lie in the order of their refreshing: the last one says whether any is unexpired, the first ones
are those to forget.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from broker.engine.event_loop import steady_clock
from remoting.wire.bodies.message_queue import MessageQueue

logger = logging.getLogger(__name__)

# RocketMQ's `rocketmq.broker.rebalance.lockMaxLiveTime`; clients refresh every 20 s.
LOCK_LIFE_MS = 60_000
# Of one group, about 5 MB: far more queues than one group reads.
LOCKS_PER_GROUP_MAX = 16_384
# Of all groups, about 60 MB; beyond it nothing new is granted until some expire.
LOCKS_MAX = 200_000


@dataclass(frozen=True, slots=True)
class QueueLock:
    client_id: str
    refreshed_ms: int


class QueueLocks:
    """`clock`: ms, steady."""

    def __init__(
        self,
        clock: Callable[[], int] = steady_clock,
        *,
        locks_max: int = LOCKS_MAX,
        per_group_max: int = LOCKS_PER_GROUP_MAX,
    ) -> None:
        self._clock = clock
        self._locks_max = locks_max
        self._per_group_max = per_group_max
        self._groups: dict[str, dict[MessageQueue, QueueLock]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def lock(self, group: str, queues: Iterable[MessageQueue], client_id: str) -> list[MessageQueue]:
        """Locks those of `queues` that are free; returns all of them that the client holds from now on."""
        locks = self._groups.setdefault(group, {})
        now_ms = self._clock()
        self._forget_expired(locks, now_ms)
        granted = [queue for queue in dict.fromkeys(queues) if self._grant(locks, queue, client_id, now_ms)]
        if not locks:
            del self._groups[group]
        return granted

    def _grant(self, locks: dict[MessageQueue, QueueLock], queue: MessageQueue, client_id: str, now_ms: int) -> bool:
        present = locks.get(queue)
        if present is None:
            if len(locks) >= self._per_group_max or self._count >= self._locks_max:
                return False
            self._count += 1
        elif present.client_id != client_id:
            return False  # unexpired, or it were gone
        else:
            del locks[queue]  # enters again as the last one
        locks[queue] = QueueLock(client_id, now_ms)
        return True

    def unlock(self, group: str, queues: Iterable[MessageQueue], client_id: str) -> None:
        """Unlocks those of `queues` that the client holds; the others stay as they are."""
        locks = self._groups.get(group, {})
        for queue in queues:
            present = locks.get(queue)
            if present is None or present.client_id != client_id:
                logger.debug("group %s: %s unlocks %s, which it does not hold", group, client_id, queue)
                continue
            del locks[queue]
            self._count -= 1
        if not locks:
            self._groups.pop(group, None)

    def has_unexpired(self, group: str) -> bool:
        """Tells whether the group consumes in order now (RocketMQ asks `isLockAllExpired`)."""
        locks = self._groups.get(group)
        return locks is not None and not _is_expired(locks[next(reversed(locks))], self._clock())

    def forget_expired(self) -> None:
        """Forgets expired locks of groups that do not lock any more; called now and then."""
        now_ms = self._clock()
        for group in list(self._groups):
            self._forget_expired(self._groups[group], now_ms)
            if not self._groups[group]:
                del self._groups[group]

    def _forget_expired(self, locks: dict[MessageQueue, QueueLock], now_ms: int) -> None:
        while locks and _is_expired(locks[first := next(iter(locks))], now_ms):
            del locks[first]
            self._count -= 1


def _is_expired(lock: QueueLock, now_ms: int) -> bool:
    return now_ms - lock.refreshed_ms > LOCK_LIFE_MS
