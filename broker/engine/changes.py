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
# What all events together touched, about 50 MB: twice a second, progress may touch every queue of a large broker.
TOUCHED_MAX = 200_000

QueueKey = tuple[str, int]  # topic, queue id
CommitKey = tuple[str, str, int]  # group, topic, queue id


@dataclass(slots=True)
class Touched:
    """What a reader must be told the present state of."""

    groups: set[str] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    queues: set[QueueKey] = field(default_factory=set)
    commits: set[CommitKey] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.groups) + len(self.topics) + len(self.queues) + len(self.commits)

    def add(self, other: Touched) -> None:
        self.groups |= other.groups
        self.topics |= other.topics
        self.queues |= other.queues
        self.commits |= other.commits


class Changes:
    """Revision 1 is the start of this life of the broker; 0 is "nothing known"."""

    def __init__(self, changes_max: int = CHANGES_MAX, touched_max: int = TOUCHED_MAX) -> None:
        self._ring: deque[tuple[WatchEvent, Touched]] = deque()
        self._changes_max = changes_max
        self._touched_max = touched_max
        self._touched_count = 0
        self.revision = 1

    def add(self, event: WatchEvent, touched: Touched) -> None:
        """Gives the event its revision."""
        self.revision += 1
        event.revision = self.revision
        self._ring.append((event, touched))
        self._touched_count += len(touched)
        while len(self._ring) > self._changes_max or (self._touched_count > self._touched_max and len(self._ring) > 1):
            self._touched_count -= len(self._ring.popleft()[1])

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
