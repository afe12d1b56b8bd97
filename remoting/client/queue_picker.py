"""Picks the queue of the next message: round robin and away from a broker that just failed, or by the message's key."""

from __future__ import annotations

import random
from collections.abc import Sequence

from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.java_string import string_hash

# Topics whose next queue is remembered; beyond it the oldest is forgotten and begins at random again.
TOPICS_MAX = 10_000


def queue_by_key(key: str, queues: Sequence[MessageQueue]) -> MessageQueue:
    """Returns the queue of all messages with this key (Java `SelectMessageQueueByHash`): |hash % number of queues|.

    Java's producers choose the same one; another number of queues moves most keys.
    """
    return queues[abs(string_hash(key)) % len(queues)]


class QueuePicker:
    """Begins at a random queue, so that many producers do not send to the same queue at the same time."""

    def __init__(self, topics_max: int = TOPICS_MAX) -> None:
        self._topics_max = topics_max
        self._next: dict[str, int] = {}

    def pick(self, topic: str, queues: Sequence[MessageQueue], avoid_broker: str | None = None) -> MessageQueue:
        """Returns the next of `queues` (at least one), of another broker than `avoid_broker` where there is one."""
        for _ in range(len(queues)):
            queue = queues[self._step(topic) % len(queues)]
            if queue.broker_name != avoid_broker:
                return queue
        return queues[self._step(topic) % len(queues)]

    def _step(self, topic: str) -> int:
        step = self._next.get(topic)
        if step is None:
            if len(self._next) >= self._topics_max:
                del self._next[next(iter(self._next))]
            step = random.randrange(1 << 30)
        self._next[topic] = step + 1
        return step
