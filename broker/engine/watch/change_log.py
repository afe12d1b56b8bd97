"""What changed on this broker lately: a bounded ring of numbered events, and which revision last touched what.

Pure: no clock, no socket. A reader says the last revision it knows and gets what came after, or nothing when that has
been forgotten: then only a whole snapshot helps. What is touched again and again is remembered once, so a reader that
takes long over its snapshot of a large and busy broker still finds everything that happened meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from remoting.wire.bodies.watch import WatchEvent

# A rebalance of a group with 100 members is some 400 events.
CHANGES_MAX = 4096
# Different things that were touched, about 50 MB: 10,000 topics of 8 queues that five groups read.
TOUCHED_MAX = 500_000

QueueKey = tuple[str, int]  # topic, queue id
CommitKey = tuple[str, str, int]  # group, topic, queue id
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(slots=True)
class Touched:
    """What a reader must be told the present state of."""

    groups: set[str] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    queues: set[QueueKey] = field(default_factory=set)
    commits: set[CommitKey] = field(default_factory=set)


class Changes:
    """Revision 1 is the start of this life of the broker; 0 is "nothing known"."""

    def __init__(self, changes_max: int = CHANGES_MAX, touched_max: int = TOUCHED_MAX) -> None:
        self._ring: deque[WatchEvent] = deque()
        self._changes_max = changes_max
        self._touched_max = touched_max
        # The last revision that touched it, in the order of these revisions.
        self._groups: dict[str, int] = {}
        self._topics: dict[str, int] = {}
        self._queues: dict[QueueKey, int] = {}
        self._commits: dict[CommitKey, int] = {}
        self._forgotten = 0
        self.revision = 1

    def add(self, event: WatchEvent, touched: Touched) -> None:
        """Gives the event its revision."""
        self.revision += 1
        event.revision = self.revision
        self._ring.append(event)
        _touch(self._groups, touched.groups, self.revision)
        _touch(self._topics, touched.topics, self.revision)
        _touch(self._queues, touched.queues, self.revision)
        _touch(self._commits, touched.commits, self.revision)
        while len(self._ring) > 1 and (len(self._ring) > self._changes_max or self._touched_count > self._touched_max):
            self._forget(self._ring.popleft().revision)

    @property
    def _touched_count(self) -> int:
        return len(self._groups) + len(self._topics) + len(self._queues) + len(self._commits)

    def _forget(self, revision: int) -> None:
        """Everything up to `revision`."""
        self._forgotten = revision
        _forget(self._groups, revision)
        _forget(self._topics, revision)
        _forget(self._queues, revision)
        _forget(self._commits, revision)

    def knows(self, revision: int) -> bool:
        """Whether everything after `revision` is still here."""
        return max(1, self._forgotten) <= revision <= self.revision

    def after(self, revision: int) -> tuple[list[WatchEvent], Touched]:
        """The events after `revision`, which must be known, and all that they touched."""
        events = [self._ring[index] for index in range(max(0, revision + 1 - self._first), len(self._ring))]
        touched = Touched(
            groups=_after(self._groups, revision),
            topics=_after(self._topics, revision),
            queues=_after(self._queues, revision),
            commits=_after(self._commits, revision),
        )
        return events, touched

    @property
    def _first(self) -> int:
        return self._ring[0].revision if self._ring else self.revision + 1


def _touch(last: dict[_Key, int], keys: Iterable[_Key], revision: int) -> None:
    for key in keys:
        last.pop(key, None)
        last[key] = revision


def _forget(last: dict[_Key, int], revision: int) -> None:
    gone = []
    for key, touched in last.items():
        if touched > revision:
            break
        gone.append(key)
    for key in gone:
        del last[key]


def _after(last: dict[_Key, int], revision: int) -> set[_Key]:
    found = set()
    for key in reversed(last):
        if last[key] <= revision:
            break
        found.add(key)
    return found
