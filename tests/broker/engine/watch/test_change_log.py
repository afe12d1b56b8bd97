"""The ring of changes: what came after a revision, or that only a snapshot will do."""

from __future__ import annotations

from broker.engine.watch.change_log import AffectedKeys, ChangeLog
from remoting.wire.bodies.watch import PROGRESS, TOPIC_CHANGED, WatchEvent


def changes_of(number: int, changes_max: int = 100) -> ChangeLog:
    changes = ChangeLog(changes_max)
    for index in range(number):
        affected = AffectedKeys(topics={f"t{index}"})
        changes.add(WatchEvent(revision=0, at_ms=index, kind=TOPIC_CHANGED, topic=f"t{index}"), affected)
    return changes


def test_changes_tell_what_came_after_a_revision() -> None:
    changes = changes_of(3)
    assert changes.revision == 4
    events, affected = changes.after(2)
    assert [(event.revision, event.topic) for event in events] == [(3, "t1"), (4, "t2")]
    assert affected.topics == {"t1", "t2"}
    assert changes.after(4) == ([], AffectedKeys())


def test_changes_know_what_they_have_forgotten() -> None:
    changes = changes_of(10, changes_max=3)
    assert [revision for revision in range(20) if changes.knows(revision)] == [8, 9, 10, 11]
    events, _ = changes.after(8)
    assert [event.revision for event in events] == [9, 10, 11]


def test_changes_forget_the_oldest_when_they_touched_too_much_together() -> None:
    """A console that watches asks within a second; queues by the thousand, twice a second, would fill the memory."""
    changes = ChangeLog(changes_max=100, affected_max=10)
    for start, size in ((0, 6), (6, 4), (10, 5), (15, 3), (20, 50)):
        affected = AffectedKeys(queues={("t", number) for number in range(start, start + size)})
        changes.add(WatchEvent(revision=0, at_ms=0, kind=PROGRESS), affected)
        known = [revision for revision in range(1, changes.revision) if changes.knows(revision)]
        events, seen = changes.after(changes.revision - 1)
        assert (len(events), len(seen.queues)) == (1, size)
    assert known == [5]
    changes.add(WatchEvent(revision=0, at_ms=0, kind=PROGRESS), AffectedKeys(queues={("t", 1)}))
    assert [revision for revision in range(8) if changes.knows(revision)] == [6, 7]


def test_changes_remember_once_what_is_touched_again_and_again() -> None:
    """However long a reader takes over its snapshot, what happened meanwhile is still known."""
    changes = ChangeLog(changes_max=1000, affected_max=10)
    for _ in range(500):
        affected = AffectedKeys(queues={("t", number) for number in range(5)}, commits={("g", "t", 1)})
        changes.add(WatchEvent(revision=0, at_ms=0, kind=PROGRESS), affected)
    events, seen = changes.after(1)
    assert len(events) == 500
    assert (len(seen.queues), len(seen.commits)) == (5, 1)
    assert changes.after(501) == ([], AffectedKeys())


def test_a_fresh_ring_knows_only_its_start() -> None:
    changes = ChangeLog()
    assert [revision for revision in range(4) if changes.knows(revision)] == [1]
