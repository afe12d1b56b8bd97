"""The planner of progress alone: rows and what was observed in, new values of rows out, no database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from mqadmin.observing.observation import CommitObserved, Owner
from mqadmin.observing.offset_plan import GroupProgress, OffsetRow, queue_offsets
from remoting.wire.bodies.message_queue import MessageQueue

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
EARLIER = NOW - timedelta(minutes=5)
GROUP = 7
QUEUE = MessageQueue("orders", "broker-a", 0)


def offset_row(**fields: Any) -> OffsetRow:
    return OffsetRow(*QUEUE, pk=1)._replace(**fields)


def advanced(row: OffsetRow | None, committed: CommitObserved | None = None, **progress: Any) -> list[dict[str, Any]]:
    """Returns the new values of the rows that change."""
    of_group = GroupProgress(GROUP, {QUEUE: committed} if committed else {}, **progress)
    return [values for _, values in queue_offsets(of_group, [row] if row else [], [QUEUE], NOW)]


def committed(offset: int, behind_since: datetime | None = None) -> CommitObserved:
    return CommitObserved("billing", QUEUE, offset, behind_since)


def test_first_commit_seen_does_not_claim_that_the_offset_moved() -> None:
    (values,) = advanced(None, committed(5))
    assert values == {"committed_offset": 5, "committed_since": NOW, "seen_at": NOW}


def test_changed_commit_moved_now() -> None:
    (values,) = advanced(offset_row(committed_offset=5), committed(6))
    assert values == {"committed_offset": 6, "committed_since": NOW, "moved_at": NOW, "seen_at": NOW}


def test_unchanged_progress_is_not_written() -> None:
    assert advanced(offset_row(committed_offset=5), committed(5)) == []


def test_broker_that_says_since_when_is_believed() -> None:
    (values,) = advanced(None, committed(5, EARLIER))
    assert (values["behind_since"], values["behind_method"]) == (EARLIER, "store_time")


def test_commit_forgets_since_when_the_message_before_it_waited() -> None:
    row = offset_row(committed_offset=5, behind_since=EARLIER, behind_method="store_time")
    (values,) = advanced(row, committed(9))
    assert (values["behind_since"], values["behind_method"]) == (None, "")


def test_same_commit_keeps_since_when_its_message_has_been_waiting() -> None:
    row = offset_row(committed_offset=5, behind_since=EARLIER, behind_method="observed")
    assert advanced(row, committed(5)) == []
    assert advanced(row, committed(5, NOW)) == [{"behind_since": NOW, "behind_method": "store_time", "seen_at": NOW}]


def test_queue_of_a_subscribed_topic_has_a_row_before_the_first_commit() -> None:
    assert advanced(None, subscribed_topics=frozenset(["orders"])) == [{"is_subscribed": True, "seen_at": NOW}]


def test_topic_that_is_not_subscribed_any_more_is_marked() -> None:
    row = offset_row(committed_offset=5, is_subscribed=True)
    assert advanced(row, subscribed_topics=frozenset(["refunds"])) == [{"is_subscribed": False, "seen_at": NOW}]


def test_subscription_that_is_not_told_stays() -> None:
    assert advanced(offset_row(committed_offset=5, is_subscribed=True)) == []


def test_owner_is_who_pulls_and_nobody_is_not_unknown() -> None:
    row = offset_row(committed_offset=5)
    (values,) = advanced(row, owners={QUEUE: Owner("c1", EARLIER, NOW)})
    assert values == {"owner": "c1", "owner_since": EARLIER, "last_pull_at": NOW, "seen_at": NOW}
    owned = row._replace(owner="c1", owner_since=EARLIER, last_pull_at=NOW)
    assert advanced(owned) == [], "not told is not changed"
    (values,) = advanced(owned, owners={})
    assert (values["owner"], values["owner_since"]) == ("", None)


def test_queue_that_is_pulled_has_a_row_before_anything_else_is_known() -> None:
    progress = GroupProgress(GROUP, owners={QUEUE: Owner("c1", EARLIER, NOW)})
    ((row, values),) = queue_offsets(progress, [], [], NOW)
    assert (row.pk, values["owner"], values.get("committed_offset")) == (None, "c1", None)
