"""Random histories of a group's members and queues, told in answers of any length: the timeline replays to a model.

TORTURE=1 pytest tests/mqadmin/rebalances/test_histories.py      a thousand histories
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from mqadmin.console.timeline import timeline
from mqadmin.observing.observation import ObservedEvent
from mqadmin.observing.signals import MembershipChange
from mqadmin.rebalances.models import RebalanceEvent, RebalanceKind
from mqadmin.rebalances.recording import events_of_watch
from mqadmin.rebalances.selectors import RebalanceRow
from remoting.wire.bodies.message_queue import MessageQueue

BEGAN = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
GROUP_ID = 7
MEMBERS = ("c0", "c1", "c2", "c3")
QUEUES = tuple(MessageQueue("orders", broker, queue_id) for broker in ("a", "b") for queue_id in (0, 1))
TAGS = ("A", "B")


class Step(NamedTuple):
    """What somebody does to the group: `what` is a name of `_Group`'s methods. `ends_answer`: a watch answers then."""

    what: str
    member: str
    queue: MessageQueue
    tag: str
    ends_answer: bool


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(("join", "leave", "die", "subscribe", "take")),
        st.sampled_from(MEMBERS),
        st.sampled_from(QUEUES),
        st.sampled_from(TAGS),
        st.booleans(),
    ),
    max_size=60,
)


@dataclass
class _Group:
    """The plain model: who is there with which tag, and who holds which queue. `events`: what a broker would tell."""

    tags: dict[str, str] = field(default_factory=dict)
    holders: dict[MessageQueue, str] = field(default_factory=lambda: dict.fromkeys(QUEUES, ""))
    events: list[ObservedEvent] = field(default_factory=list)
    told_count: int = 0
    counts: list[tuple[str, int]] = field(default_factory=list)

    def join(self, step: Step) -> None:
        if step.member not in self.tags:
            self.tags[step.member] = step.tag
            self._count(step.member)
            self._tell("member_joined", step.member)
            self._tell("subscription_changed", step.member)

    def leave(self, step: Step) -> None:
        self._go(step.member, "member_left")

    def die(self, step: Step) -> None:
        self._go(step.member, "member_lost")

    def _go(self, member: str, kind: str) -> None:
        if self.tags.pop(member, None) is None:
            return
        self._count(member)
        self._tell(kind, member)
        for queue, holder in self.holders.items():
            if holder == member:
                self._move(queue, "")

    def subscribe(self, step: Step) -> None:
        if self.tags.get(step.member, step.tag) != step.tag:
            self.tags[step.member] = step.tag
            self._tell("subscription_changed", step.member)

    def take(self, step: Step) -> None:
        if step.member in self.tags and self.holders[step.queue] != step.member:
            self._move(step.queue, step.member)

    def _move(self, queue: MessageQueue, to: str) -> None:
        before, self.holders[queue] = self.holders[queue], to
        self._tell("assignment_changed", queue=queue, from_client=before, to_client=to)

    def _count(self, member: str) -> None:
        self.counts.append((member, len(self.tags)))

    def _tell(self, kind: str, client_id: str = "", **more: object) -> None:
        self.told_count += 1
        at = BEGAN + timedelta(milliseconds=self.told_count)
        key = f"boot:{self.told_count}"
        self.events.append(ObservedEvent(key=key, at=at, kind=kind, group="g", client_id=client_id, **more))  # type: ignore[arg-type]


def told(steps: Sequence[Step]) -> tuple[_Group, list[RebalanceEvent]]:
    """Carries the steps out; returns the group as it is then, and the rows of all answers."""
    group, rows = _Group(), []
    for number, step in enumerate(steps, 1):
        getattr(group, step.what)(step)
        if step.ends_answer or number == len(steps):
            change = MembershipChange(group_id=GROUP_ID, member_count=len(group.tags))
            rows += events_of_watch(1, group.events, {"g": change})
            group.events = []
    return group, rows


def replayed(rows: Iterable[RebalanceEvent]) -> tuple[set[str], dict[MessageQueue, str], list[tuple[str, int]]]:
    """Returns who is there and holds what after all that the timeline says, and the counts that it says."""
    members: set[str] = set()
    holders = dict.fromkeys(QUEUES, "")
    counts = []
    for row in rows:
        match row.kind:
            case RebalanceKind.JOINED:
                assert row.client_id not in members
                members.add(row.client_id)
            case RebalanceKind.LEFT | RebalanceKind.LOST:
                members.remove(row.client_id)
            case RebalanceKind.SUBSCRIPTION_CHANGED:
                continue
            case RebalanceKind.QUEUES_MOVED:
                for move in row.details["moves"]:
                    queue = MessageQueue(move["topic"], move["broker"], move["queue_id"])
                    assert holders[queue] == move["from"]
                    holders[queue] = move["to"]
                continue
        assert row.details["member_count"] == len(members)
        counts.append((row.client_id, len(members)))
    return members, holders, counts


@given(STEPS)
def test_timeline_of_any_history_replays_to_what_is_so_and_has_each_fact_once(steps: list[Step]) -> None:
    group, rows = told(steps)
    members, holders, counts = replayed(rows)
    assert (members, holders, counts) == (set(group.tags), group.holders, group.counts)
    assert [row.at for row in rows] == sorted(row.at for row in rows)
    assert len({row.source_key for row in rows}) == len(rows), "what is read twice is stored once"


@given(STEPS)
def test_how_a_history_is_cut_into_answers_changes_no_fact(steps: list[Step]) -> None:
    _, together = told([step._replace(ends_answer=False) for step in steps])
    _, apart = told([step._replace(ends_answer=True) for step in steps])
    came_or_went = {RebalanceKind.LEFT, RebalanceKind.LOST, RebalanceKind.JOINED}
    facts = [
        [(row.at, row.kind, row.client_id, row.details) for row in rows if row.kind in came_or_went]
        for rows in (together, apart)
    ]
    assert facts[0] == facts[1]
    moves = [[move for row in rows for move in row.details.get("moves", ())] for rows in (together, apart)]
    assert moves[0] == moves[1]


@given(STEPS)
def test_page_shows_every_row_the_newest_first(steps: list[Step]) -> None:
    _, rows = told(steps)
    shown = [
        RebalanceRow(number, "g", row.at, row.kind, row.client_id, row.details, row.source)
        for number, row in enumerate(rows)
    ]
    entries = timeline(shown[::-1])
    assert [entry.event for entry in entries] == shown[::-1]
    assert all(entry.text for entry in entries)
