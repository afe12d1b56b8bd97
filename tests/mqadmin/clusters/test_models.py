"""What follows from a group's row of a queue and the topic's row of the same queue. No database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from mqadmin.clusters.models import Cluster, Member, QueueOffset, TopicQueue
from mqadmin.clusters.waiting import noted

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
EARLIER = NOW - timedelta(minutes=5)


def offset(committed: int | None, end: TopicQueue | None, **fields: Any) -> QueueOffset:
    row = QueueOffset(committed_offset=committed, **fields)
    row.end = end
    return row


def queue(max_offset: int, last_stored_at: datetime | None = None, seen_at: datetime | None = None) -> TopicQueue:
    history = noted(b"", int(seen_at.timestamp()), max_offset) if seen_at else b""
    return TopicQueue(max_offset=max_offset, last_stored_at=last_stored_at, max_history=history)


def test_lag_is_never_below_zero_and_not_known_without_an_offset() -> None:
    assert offset(5, queue(12)).lag == 7
    assert offset(12, queue(5)).lag == 0
    assert offset(None, queue(5)).lag is None
    assert offset(5, None).lag is None


def test_nobody_is_behind_on_a_queue_that_never_held_a_message() -> None:
    assert offset(None, queue(0)).lag == 0


def test_end_that_moves_makes_lag_without_a_commit() -> None:
    row = offset(5, queue(9, seen_at=NOW))
    assert (row.lag, row.behind.since, row.behind.method) == (4, NOW, "observed")


def test_store_time_of_the_same_message_stays_when_the_end_moves_on() -> None:
    row = offset(5, queue(9, seen_at=NOW), behind_since=EARLIER, behind_method="store_time")
    assert (row.behind.since, row.behind.method) == (EARLIER, "store_time")


def test_last_message_of_a_queue_has_waited_since_it_was_stored() -> None:
    row = offset(5, queue(6, last_stored_at=EARLIER, seen_at=NOW))
    assert (row.behind.since, row.behind.method) == (EARLIER, "store_time")


def test_without_a_store_time_it_waits_since_it_was_first_observed() -> None:
    row = offset(5, queue(9, seen_at=EARLIER))
    assert (row.behind.since, row.behind.method) == (EARLIER, "observed")


def test_nothing_waits_at_the_end() -> None:
    row = offset(9, queue(9, seen_at=NOW), behind_since=EARLIER, behind_method="observed")
    assert (row.lag, row.behind.since, row.behind.method) == (0, None, "")


def test_followed_cluster_that_answers_is_true_up_to_its_follower_s_word() -> None:
    cluster = Cluster(kind="ours", state="reachable", last_synced_at=EARLIER)
    assert cluster.true_until(EARLIER) == EARLIER
    cluster.__dict__["lease_renewed_at"] = NOW
    assert cluster.true_until(EARLIER) == NOW
    cluster.state = "unreachable"
    assert cluster.true_until(EARLIER) == EARLIER
    assert Cluster(kind="apache", last_synced_at=NOW).true_until(EARLIER) == EARLIER


def test_differences_that_the_broker_saw_are_values() -> None:
    told = {
        "topic": "orders",
        "expression": None,
        "expression_type": None,
        "sub_version": 0,
        "since_ms": int(EARLIER.timestamp() * 1000),
        "last_seen_ms": int(NOW.timestamp() * 1000),
        "is_over": False,
        "others": ["c2"],
    }
    (difference,) = Member(differences=[told]).subscription_differences
    assert (difference.topic, difference.expression, difference.since, difference.others) == (
        "orders",
        None,
        EARLIER,
        ("c2",),
    )
