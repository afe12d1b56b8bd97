"""The ring of changes: what came after a revision, or that only a snapshot will do."""

from __future__ import annotations

from broker.engine.changes import Changes, Touched
from remoting.wire.bodies.watch import TOPIC_CHANGED, WatchEvent


def changes_of(number: int, changes_max: int = 100) -> Changes:
    changes = Changes(changes_max)
    for index in range(number):
        touched = Touched(topics={f"t{index}"})
        changes.add(WatchEvent(revision=0, at_ms=index, kind=TOPIC_CHANGED, topic=f"t{index}"), touched)
    return changes


def test_changes_tell_what_came_after_a_revision() -> None:
    changes = changes_of(3)
    assert changes.revision == 4
    events, touched = changes.after(2)
    assert [(event.revision, event.topic) for event in events] == [(3, "t1"), (4, "t2")]
    assert touched.topics == {"t1", "t2"}
    assert changes.after(4) == ([], Touched())


def test_changes_know_what_they_have_forgotten() -> None:
    changes = changes_of(10, changes_max=3)
    assert [revision for revision in range(20) if changes.knows(revision)] == [8, 9, 10, 11]
    events, _ = changes.after(8)
    assert [event.revision for event in events] == [9, 10, 11]


def test_a_fresh_ring_knows_only_its_start() -> None:
    changes = Changes()
    assert [revision for revision in range(4) if changes.knows(revision)] == [1]


def test_touched_things_add_up() -> None:
    touched = Touched(groups={"a"}, queues={("t", 1)})
    touched.add(Touched(groups={"b"}, topics={"t"}, commits={("a", "t", 1)}))
    assert touched == Touched({"a", "b"}, {"t"}, {("t", 1)}, {("a", "t", 1)})
