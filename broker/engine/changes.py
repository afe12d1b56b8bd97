"""What changed on this broker lately: a bounded ring of numbered events, each with what it touched.

Pure: no clock, no socket. A reader says the last revision it knows and gets what came after, or nothing when that has
left the ring: then only a whole snapshot helps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from remoting.wire.bodies.watch import WatchEvent

# A rebalance of a group with 100 members is some 400 events.
CHANGES_MAX = 4096

QueueKey = tuple[str, int]  # topic, queue id
CommitKey = tuple[str, str, int]  # group, topic, queue id


@dataclass(slots=True)
class Touched:
    """What a reader must be told the present state of."""

    groups: set[str] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    queues: set[QueueKey] = field(default_factory=set)
    commits: set[CommitKey] = field(default_factory=set)

    def add(self, other: Touched) -> None:
        self.groups |= other.groups
        self.topics |= other.topics
        self.queues |= other.queues
        self.commits |= other.commits


class Changes:
    """Revision 1 is the start of this life of the broker; 0 is "nothing known"."""

    def __init__(self, changes_max: int = CHANGES_MAX) -> None:
        self._ring: deque[tuple[WatchEvent, Touched]] = deque(maxlen=changes_max)
        self.revision = 1

    def add(self, event: WatchEvent, touched: Touched) -> None:
        """Gives the event its revision."""
        self.revision += 1
        event.revision = self.revision
        self._ring.append((event, touched))

    def knows(self, revision: int) -> bool:
        """Whether everything after `revision` is still here."""
        oldest = self._ring[0][0].revision if self._ring else self.revision + 1
        return oldest - 1 <= revision <= self.revision

    def after(self, revision: int) -> tuple[list[WatchEvent], Touched]:
        """The events after `revision`, which must be known, and all that they touched."""
        touched = Touched()
        events = []
        for event, its_touched in self._since(revision):
            events.append(event)
            touched.add(its_touched)
        return events, touched

    def _since(self, revision: int) -> Iterable[tuple[WatchEvent, Touched]]:
        first = self._ring[0][0].revision if self._ring else 0
        return (self._ring[index] for index in range(max(0, revision + 1 - first), len(self._ring)))
