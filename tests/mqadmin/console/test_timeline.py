"""Rebalance events in words, and who got and gave which queues."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mqadmin.console.timeline import event_text, queue_changes, timeline
from mqadmin.rebalances.models import RebalanceKind
from mqadmin.rebalances.selectors import RebalanceRow

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def event(kind: str, at: datetime = NOON, source: str = "watch", **details: object) -> RebalanceRow:
    return RebalanceRow(id=1, group_name="g", at=at, kind=kind, client_id="c", details=details, source=source)


def move(queue_id: int, giver: str, taker: str) -> dict[str, object]:
    return {"topic": "orders", "broker": "a", "queue_id": queue_id, "from": giver, "to": taker}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (event("joined", member_count=3), "joined, 3 members after that"),
        (event("left", member_count=1), "left, 1 member after that"),
        (event("lost"), "lost its connection"),
        (event("gone", member_count=0), "disappeared, 0 members after that"),
        (event("queues_moved", moves=[move(0, "a", "b")]), "1 queue moved"),
        (event("queues_moved", moves=[move(0, "a", "b"), move(1, "a", "a")]), "1 queue moved"),
        (event("queues_moved", moves=[move(0, "a", "a")]), "1 queue went back to the member that had it"),
        (
            event("subscription_changed", topics=[{"topic": "orders", "before": "", "after": "A || B"}]),
            "changed its subscription: orders: nothing → A || B",
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, RebalanceRow) else "",
)
def test_an_event_is_said_in_words(row, words):
    assert event_text(row) == words


def test_every_kind_has_words_of_its_own():
    assert len({event_text(event(kind)) for kind in RebalanceKind}) == len(RebalanceKind)


def test_a_move_is_lost_to_one_and_gained_by_the_other():
    moves = [move(0, "a", "b"), move(1, "a", "c"), move(2, "", "b")]
    changes = {change.client_id: change for change in queue_changes(moves)}
    assert changes["a"].lost == ["orders 0", "orders 1"]
    assert changes["b"].gained == ["orders 0", "orders 2"]
    assert changes["c"].gained == ["orders 1"]
    assert "" not in changes


def test_a_queue_that_came_back_is_no_change():
    assert queue_changes([move(0, "a", "b"), move(0, "b", "a")]) == []
    (lost, gained) = queue_changes([move(0, "a", "b"), move(0, "b", "c")])
    assert (lost.client_id, lost.lost, gained.client_id, gained.gained) == ("a", ["orders 0"], "c", ["orders 0"])


def test_a_day_is_written_once():
    entries = timeline(
        [event("joined"), event("left", NOON - timedelta(hours=1)), event("lost", NOON - timedelta(days=1))]
    )
    assert [entry.day for entry in entries] == ["Sunday, 1 March 2026", "", "Saturday, 28 February 2026"]


def test_what_was_found_between_samples_says_so():
    assert timeline([event("gone", source="poll")])[0].note == "noticed between two samples"
    assert timeline([event("left")])[0].note == ""
