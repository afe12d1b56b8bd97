"""Rebalance events in words, and who got and gave which queues."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.utils.html import strip_tags

from mqadmin.console.timeline import churn_text, event_text, queue_changes, timeline
from mqadmin.lag.hot_window import Gap
from mqadmin.rebalances.churn import Churn, Tally
from mqadmin.rebalances.models import RebalanceKind
from mqadmin.rebalances.selectors import RebalanceRow

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def event(kind: str, at: datetime = NOON, source: str = "watch", **details: object) -> RebalanceRow:
    return RebalanceRow(id=1, group_name="g", at=at, kind=kind, client_id="c", details=details, source=source)


def plain(html: str) -> str:
    return unescape(strip_tags(html))


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
        (event("instance_started", worker="loops@a"), "started on loops@a"),
        (
            event("instance_stopped", worker="loops@a", reason="its worker stopped"),
            "stopped on loops@a: its worker stopped",
        ),
        (
            event("instance_died", worker="loops@a", reason="its process is gone"),
            "died on loops@a: its process is gone",
        ),
        (event("scaled", wanted=3, is_stopped=False), "3 instances are to run from now on"),
        (event("scaled", wanted=3, is_stopped=True), "All instances of this project are to stop"),
        (
            event("subscription_changed", topics=[{"topic": "orders", "before": "", "after": "A || B"}]),
            "changed its subscription: orders: nothing → A || B",
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, RebalanceRow) else "",
)
def test_an_event_is_said_in_words(row, words):
    assert event_text(row) == words


def test_what_members_said_themselves_has_its_doubt():
    row = event("queues_moved", source="poll", moves=[move(0, "a", "b")], since="2026-03-01T11:59:30+00:00")
    (entry,) = timeline([row])
    assert plain(entry.source) == "by the members' own word, since 11:59:30 at the earliest"
    assert '<time data-clock datetime="2026-03-01T11:59:30.000+00:00"' in entry.source
    (first,) = timeline([event("queues_moved", source="poll", moves=[move(0, "a", "b")], since=None)])
    assert first.source == "by the members' own word"


def test_every_kind_has_words_of_its_own():
    assert len({event_text(event(kind)) for kind in RebalanceKind}) == len(RebalanceKind)


def test_a_move_is_lost_to_one_and_gained_by_the_other():
    moves = [move(0, "a", "b"), move(1, "a", "c"), move(2, "", "b")]
    changes = {change.client_id: change for change in queue_changes(moves)}
    assert changes["a"].lost == {"orders": ["0", "1"]}
    assert changes["b"].gained == {"orders": ["0", "2"]}
    assert changes["c"].gained == {"orders": ["1"]}
    assert "" not in changes


def test_a_queue_that_came_back_is_no_change():
    assert queue_changes([move(0, "a", "b"), move(0, "b", "a")]) == []
    (lost, gained) = queue_changes([move(0, "a", "b"), move(0, "b", "c")])
    assert (lost.client_id, lost.lost) == ("a", {"orders": ["0"]})
    assert (gained.client_id, gained.gained) == ("c", {"orders": ["0"]})


def test_queues_of_several_brokers_are_named_with_theirs():
    (change,) = queue_changes([move(0, "", "m"), {**move(0, "", "m"), "broker": "b"}])
    assert change.gained == {"orders · a": ["0"], "orders · b": ["0"]}


def test_a_day_is_written_once():
    entries = timeline(
        [event("joined"), event("left", NOON - timedelta(hours=1)), event("lost", NOON - timedelta(days=1))]
    )
    assert [entry.day for entry in entries] == ["Sunday 1 March 2026", "", "Saturday 28 February 2026"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (event("left"), "reported by the broker"),
        (event("gone", source="poll"), "noticed between two samples"),
        (
            event("gone", source="poll", since="2026-11-23T09:00:15+00:00"),
            "noticed between two samples, after 09:00:15",
        ),
        (event("instance_died", source="runtime"), "by this project’s runtime"),
    ],
    ids=["watch", "poll", "poll with the sample before", "runtime"],
)
def test_every_entry_says_how_it_is_known(row, words):
    assert plain(timeline([row])[0].source) == words


@pytest.mark.parametrize(
    ("at_least_s", "at_most_s", "is_over", "words"),
    [
        (75, 165, True, "Consumption of orders 3 stood for 1 m 15 s at least, 2 m 45 s at most."),
        (0, 75, True, "Consumption was not seen to stand: for 1 m 15 s at most."),
        (75, None, True, "Consumption of orders 3 stood for 1 m 15 s at least."),
        (825, None, False, "Consumption of orders 3 stood for 13 m 45 s at least, and had not gone on by then."),
        (0, 0, True, "No message waited in these queues."),
    ],
)
def test_pause_is_said_with_its_doubt(at_least_s, at_most_s, is_over, words):
    pause = {"at_least_s": at_least_s, "at_most_s": at_most_s, "is_over": is_over}
    row = event("queues_moved", moves=[], pause={**pause, "topic": "orders", "broker": "a", "queue_id": 3})
    assert timeline([row])[0].pause == words


def test_pause_that_is_not_judged_yet_is_not_said():
    assert timeline([event("queues_moved", moves=[])])[0].pause == ""
    assert "not known" in timeline([event("queues_moved", moves=[], pause=None)])[0].pause


def test_gap_stands_where_it_ended():
    noon_s = int(NOON.timestamp())
    gaps = [Gap(noon_s - 700, noon_s - 600, "late", ""), Gap(noon_s - 90_000, noon_s - 86_000, "failed", "no answer")]
    found = timeline([event("joined"), event("left", NOON - timedelta(seconds=800))], gaps)
    assert [entry.event.kind if entry.event else "gap" for entry in found] == ["joined", "gap", "left", "gap"]
    words = "From 11:48:20 to 11:50:00 (1 m 40 s) nothing was sampled: what happened may be missing."
    assert plain(found[1].text) == words
    assert plain(found[3].text) == "From 11:00:00 to 12:06:40 (1 h 06 m) nothing could be sampled: no answer."
    assert found[3].day == "Saturday 28 February 2026"


def test_what_brokers_said_of_a_gap_is_escaped():
    (found,) = timeline([], [Gap(0, 60, "failed", "<b>")])
    assert "nothing could be sampled: &lt;b&gt;." in found.text


@pytest.mark.parametrize(
    ("hour", "day", "words"),
    [
        (Tally(), Tally(), "0 rebalances in the last hour, 0 in the last 24 hours."),
        (
            Tally(1, 1, 3),
            Tally(9, 2, 24),
            "1 rebalance in the last hour, 9 in the last 24 hours; 2 members were lost. Weighed (a lost member 3, a "
            "changed subscription 2, else 1): 3 in the hour, 24 in the day; restless from 5 or 24 on.",
        ),
    ],
    ids=["calm", "restless"],
)
def test_churn_is_said_with_its_numbers(hour, day, words):
    assert churn_text(Churn(hour, day)) == words
