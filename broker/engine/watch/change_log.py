"""What changed on this broker lately: a bounded ring of numbered events, and which revision last affected what.

Pure: no clock, no socket. A reader says the last revision it knows and gets what came after, or nothing when that has
been forgotten: then only a whole snapshot helps. What changes again and again is remembered once, so a reader that
takes long over its snapshot of a large and busy broker still finds all that changed meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from remoting.wire.bodies.watch import WatchEvent

# A rebalance of a group with 100 members is some 400 events.
CHANGES_MAX = 4096
# Different things that were affected, about 50 MB: 10,000 topics of 8 queues that five groups read.
AFFECTED_MAX = 500_000

QueueKey = tuple[str, int]  # topic, queue id
CommitKey = tuple[str, str, int]  # group, topic, queue id
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(slots=True)
class AffectedKeys:
    """Names the groups, topics, queues and commits whose present state a reader needs."""

    groups: set[str] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    queues: set[QueueKey] = field(default_factory=set)
    commits: set[CommitKey] = field(default_factory=set)


class ChangeLog:
    """Revision 1 is the start of this life of the broker; 0 is "nothing known"."""

    def __init__(self, changes_max: int = CHANGES_MAX, affected_max: int = AFFECTED_MAX) -> None:
        self._ring: deque[WatchEvent] = deque()
        self._changes_max = changes_max
        self._affected_max = affected_max
        # The last revision that affected it, in the order of these revisions.
        self._groups: dict[str, int] = {}
        self._topics: dict[str, int] = {}
        self._queues: dict[QueueKey, int] = {}
        self._commits: dict[CommitKey, int] = {}
        self._forgotten = 0
        self.revision = 1

    def add(self, event: WatchEvent, affected: AffectedKeys) -> None:
        """Gives the event its revision."""
        self.revision += 1
        event.revision = self.revision
        self._ring.append(event)
        _affect(self._groups, affected.groups, self.revision)
        _affect(self._topics, affected.topics, self.revision)
        _affect(self._queues, affected.queues, self.revision)
        _affect(self._commits, affected.commits, self.revision)
        while len(self._ring) > 1 and (
            len(self._ring) > self._changes_max or self._affected_count > self._affected_max
        ):
            self._forget(self._ring.popleft().revision)

    @property
    def _affected_count(self) -> int:
        return len(self._groups) + len(self._topics) + len(self._queues) + len(self._commits)

    def _forget(self, revision: int) -> None:
        """Forgets everything up to `revision`."""
        self._forgotten = revision
        _forget(self._groups, revision)
        _forget(self._topics, revision)
        _forget(self._queues, revision)
        _forget(self._commits, revision)

    def knows(self, revision: int) -> bool:
        """Tells whether everything after `revision` is still here."""
        return max(1, self._forgotten) <= revision <= self.revision

    def after(self, revision: int) -> tuple[list[WatchEvent], AffectedKeys]:
        """Returns the events after `revision`, which must be known, and all that they affected."""
        events = [self._ring[index] for index in range(max(0, revision + 1 - self._first), len(self._ring))]
        affected = AffectedKeys(
            groups=_after(self._groups, revision),
            topics=_after(self._topics, revision),
            queues=_after(self._queues, revision),
            commits=_after(self._commits, revision),
        )
        return events, affected

    @property
    def _first(self) -> int:
        return self._ring[0].revision if self._ring else self.revision + 1


def _affect(last: dict[_Key, int], keys: Iterable[_Key], revision: int) -> None:
    for key in keys:
        last.pop(key, None)
        last[key] = revision


def _forget(last: dict[_Key, int], revision: int) -> None:
    gone = []
    for key, affected in last.items():
        if affected > revision:
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
