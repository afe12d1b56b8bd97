"""What changed on this broker, for the watch request (29001, private): events, and the watchers that wait for them.

Collects events from topics, groups, members, assignments, offsets and the scheduler, and parks watch requests until
there is one. An answer holds the events and the present state of everything they affected; a request with an unknown
revision, or one of another life of the broker, gets a snapshot of all.

Progress (queues that grew, offsets that were committed) is collected and becomes one event at most every
`PROGRESS_INTERVAL_S`, and only while there are watchers, so that it costs nothing otherwise.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from broker.engine.groups.assignments import AssignmentKey, Assignments
from broker.engine.groups.members import Member
from broker.engine.store.values import Appended
from broker.engine.watch.change_log import AffectedKeys, ChangeLog, CommitKey, QueueKey
from remoting.connection import Connection
from remoting.wire.bodies import watch as kinds
from remoting.wire.bodies.watch import WatchEvent
from remoting.wire.codes import LanguageCode

# Queues that grew and offsets that were committed are reported twice a second: faster than people read.
PROGRESS_INTERVAL_S = 0.5
# Events that follow each other at once (a member joins and subscribes) go into one answer.
GATHER_S = 0.02
# As long as a pull may wait, and less than any client gives up after.
WAIT_MS_MAX = 30_000
# Named in one event; what a group subscribes to is in its state.
TOPICS_NAMED_MAX = 20
# Consoles that watch at once; beyond it they are answered without waiting.
WATCHERS_MAX = 64


@dataclass(slots=True, eq=False)
class _Watcher:
    connection: Connection
    notify: Callable[[], None]
    timer: asyncio.TimerHandle


class Watch:
    """Implements `members.MemberEvents`. `boot` names this life of the broker."""

    def __init__(
        self,
        clock: Callable[[], int],
        *,
        progress_interval_s: float = PROGRESS_INTERVAL_S,
        gather_s: float = GATHER_S,
    ) -> None:
        self._clock = clock
        self._progress_interval_s = progress_interval_s
        self._gather_s = gather_s
        self._changes = ChangeLog()
        self._watchers: list[_Watcher] = []
        self._to_notify: deque[_Watcher] = deque()
        self._grown: set[QueueKey] = set()
        self._committed: set[CommitKey] = set()
        self._progress_timer: asyncio.TimerHandle | None = None
        self._gather_timer: asyncio.TimerHandle | None = None
        self.assignments = Assignments(clock, self._assignment_changed)
        self.boot = secrets.token_hex(8)

    # events

    def joined(self, group: str, member: Member) -> None:
        detail = {"addr": member.connection.peer, "language": LanguageCode(member.language).name}
        self._add(
            kinds.MEMBER_JOINED, AffectedKeys(groups={group}), group=group, client_id=member.client_id, detail=detail
        )

    def left(self, group: str, member: Member, *, was_lost: bool) -> None:
        self.assignments.left(group, member.client_id)
        kind = kinds.MEMBER_LOST if was_lost else kinds.MEMBER_LEFT
        self._add(kind, AffectedKeys(groups={group}), group=group, client_id=member.client_id)

    def subscribed(self, group: str, member: Member, topics: Iterable[str]) -> None:
        detail = {"topics": ",".join(islice(topics, TOPICS_NAMED_MAX))}
        affected = AffectedKeys(groups={group})
        self._add(kinds.SUBSCRIPTION_CHANGED, affected, group=group, client_id=member.client_id, detail=detail)

    def pulled(self, group: str, topic: str, queue_id: int, client_id: str) -> None:
        self.assignments.pulled(group, topic, queue_id, client_id)

    def topic_changed(self, topic: str) -> None:
        self._add(kinds.TOPIC_CHANGED, AffectedKeys(topics={topic}), topic=topic)

    def group_changed(self, group: str) -> None:
        self._add(kinds.GROUP_CHANGED, AffectedKeys(groups={group}), group=group)

    def scheduler_changed(self) -> None:
        self._add(kinds.SCHEDULER_CHANGED, AffectedKeys())

    def appended(self, appended: list[Appended]) -> None:
        """Notes which queues grew."""
        self._grown.update([(one.topic, one.queue_id) for one in appended])

    def committed(self, group: str, topic: str, queue_id: int) -> None:
        self._committed.add((group, topic, queue_id))

    def _assignment_changed(self, key: AssignmentKey, before: str, after: str) -> None:
        group, topic, queue_id = key
        event = WatchEvent(
            revision=0,
            at_ms=self._clock(),
            kind=kinds.ASSIGNMENT_CHANGED,
            group=group,
            client_id=after,
            topic=topic,
            queue_id=queue_id,
            detail={"from": before, "to": after},
        )
        self._changes.add(event, AffectedKeys(groups={group}))
        self._notify_soon()

    def _add(
        self,
        kind: str,
        affected: AffectedKeys,
        *,
        group: str | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        detail: dict[str, str] | None = None,
    ) -> None:
        event = WatchEvent(
            revision=0,
            at_ms=self._clock(),
            kind=kind,
            group=group,
            client_id=client_id,
            topic=topic,
            detail=detail or {},
        )
        self._changes.add(event, affected)
        self._notify_soon()

    # watchers

    @property
    def revision(self) -> int:
        return self._changes.revision

    def changes_since(self, boot: str, since: int) -> tuple[list[WatchEvent], AffectedKeys] | None:
        """Returns None when the answer must be a snapshot."""
        if boot != self.boot or since <= 0 or not self._changes.knows(since):
            return None
        return self._changes.after(since)

    def park(self, connection: Connection, wait_ms: int, notify: Callable[[], None]) -> bool:
        """Calls `notify` once, on the next event or after the wait. Returns False when too many wait already."""
        if len(self._watchers) + len(self._to_notify) >= WATCHERS_MAX:
            return False
        loop = asyncio.get_running_loop()
        timer = loop.call_later(min(wait_ms, WAIT_MS_MAX) / 1000, self._notify_all)
        self._watchers.append(_Watcher(connection, notify, timer))
        if self._progress_timer is None:
            self._progress_timer = loop.call_later(self._progress_interval_s, self._progress)
        return True

    def connection_lost(self, connection: Connection) -> None:
        for watcher in [watcher for watcher in self._watchers if watcher.connection is connection]:
            watcher.timer.cancel()
            self._watchers.remove(watcher)

    def stop(self) -> None:
        for timer in (self._progress_timer, self._gather_timer, *(watcher.timer for watcher in self._watchers)):
            if timer is not None:
                timer.cancel()
        self._watchers.clear()
        self._to_notify.clear()

    def _progress(self) -> None:
        """Reports progress; runs again and again from a watcher's parking on, until there is no watcher."""
        self._progress_timer = None
        if self._grown or self._committed:
            affected = AffectedKeys(queues=self._grown, commits=self._committed)
            self._grown, self._committed = set(), set()
            self._changes.add(WatchEvent(revision=0, at_ms=self._clock(), kind=kinds.PROGRESS), affected)
            self._notify_all()
        elif self._watchers:
            self._progress_timer = asyncio.get_running_loop().call_later(self._progress_interval_s, self._progress)

    def _notify_soon(self) -> None:
        if self._watchers and self._gather_timer is None:
            self._gather_timer = asyncio.get_running_loop().call_later(self._gather_s, self._notify_all)

    def _notify_all(self) -> None:
        if self._gather_timer is not None:
            self._gather_timer.cancel()
            self._gather_timer = None
        self._to_notify += self._watchers
        self._watchers = []
        self._notify_next()

    def _notify_next(self) -> None:
        """Notifies one watcher in a turn of the loop: an answer may be large."""
        if not self._to_notify:
            return
        watcher = self._to_notify.popleft()
        if self._to_notify:
            asyncio.get_running_loop().call_soon(self._notify_next)
        watcher.timer.cancel()
        if watcher.connection.is_open:
            watcher.notify()
