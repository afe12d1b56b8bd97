"""Which queue the next message goes to: round robin, and away from a broker that just failed."""

from __future__ import annotations

import random
from collections.abc import Sequence

from remoting.wire.bodies.message_queue import MessageQueue

# Topics whose place in the round is remembered; a producer with more begins anew with the oldest.
TOPICS_MAX = 10_000


class QueuePicker:
    """Begins at random, so that many producers do not march in step."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def pick(self, topic: str, queues: Sequence[MessageQueue], avoid_broker: str | None = None) -> MessageQueue:
        """`queues` is not empty. The broker to avoid is taken when there is no other."""
        for _ in range(len(queues)):
            queue = queues[self._step(topic) % len(queues)]
            if queue.broker_name != avoid_broker:
                return queue
        return queues[self._step(topic) % len(queues)]

    def _step(self, topic: str) -> int:
        step = self._next.get(topic)
        if step is None:
            if len(self._next) >= TOPICS_MAX:
                del self._next[next(iter(self._next))]
            step = random.randrange(1 << 30)
        self._next[topic] = step + 1
        return step
