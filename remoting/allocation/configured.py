"""The queues that a team has listed for this member (Java `AllocateMessageQueueByConfig`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from remoting.allocation.average import average
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.names import is_retry_topic


@dataclass(frozen=True, slots=True)
class Configured:
    """`queues` of all topics: each member is given its own list, and whoever writes the lists sees that all are read.

    A topic of which the list names nothing is not read by this member; a retry topic of which it names nothing is
    shared by `average`, since Java's members leave such retries unread.
    """

    queues: frozenset[MessageQueue]

    name = "CONFIG"

    def __init__(self, queues: Iterable[MessageQueue]) -> None:
        object.__setattr__(self, "queues", frozenset(queues))

    def __call__(self, queues: Sequence[MessageQueue], members: Sequence[str], me: str) -> list[MessageQueue]:
        topic = queues[0].topic
        listed = sorted(queue for queue in self.queues if queue.topic == topic)
        if not listed and is_retry_topic(topic):
            return average(queues, members, me)
        return listed
