from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mqadmin.clusters.models import Cluster, Group
from mqadmin.observing.observation import ObservedEvent
from mqadmin.observing.signals import MembershipChange
from mqadmin.rebalances import recording, retention, selectors
from mqadmin.rebalances.models import RebalanceEvent
from remoting.wire.bodies.message_queue import MessageQueue

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def happened(kind: str, revision: int, client_id: str = "", queue_id: int | None = None) -> ObservedEvent:
    return ObservedEvent(
        key=f"boot:{revision}",
        at=NOW + timedelta(seconds=revision),
        kind=kind,
        group="billing",
        client_id=client_id,
        queue=None if queue_id is None else MessageQueue("orders", "broker-a", queue_id),
        from_client="c1" if queue_id is not None else "",
        to_client="c2" if queue_id is not None else "",
    )


def told(*details: ObservedEvent, **change: object) -> list[RebalanceEvent]:
    return recording.events_of_watch(1, details, {"billing": MembershipChange(group_id=7, **change)})  # type: ignore[arg-type]


def test_member_count_after_each_fact_follows_from_the_count_at_the_end() -> None:
    events = told(
        happened("member_joined", 1, "c1"),
        happened("member_joined", 2, "c2"),
        happened("member_lost", 3, "c1"),
        member_count=1,
    )
    assert [(event.kind, event.details["member_count"]) for event in events] == [
        ("joined", 1),
        ("joined", 2),
        ("lost", 1),
    ]


def test_member_count_that_is_not_known_is_not_made_up() -> None:
    assert told(happened("member_left", 1, "c1"))[0].details == {"member_count": None}


def test_what_polling_found_names_the_sample_before() -> None:
    since = NOW - timedelta(seconds=15)
    change = MembershipChange(group_id=7, member_count=1, since=since, gone=["c1"])
    (event,) = recording.events_of_samples(1, [change], NOW)
    assert (event.kind, event.at) == ("gone", NOW)
    assert event.details == {"member_count": 1, "since": since.isoformat()}


def test_queues_that_moved_together_are_one_event() -> None:
    (event,) = told(happened("assignment_changed", 1, queue_id=0), happened("assignment_changed", 2, queue_id=1))
    assert event.kind == "queues_moved"
    assert event.client_id == ""
    assert [move["queue_id"] for move in event.details["moves"]] == [0, 1]
    assert event.details["moves"][0] == {
        "topic": "orders",
        "broker": "broker-a",
        "queue_id": 0,
        "from": "c1",
        "to": "c2",
    }


def test_changed_subscription_carries_before_and_after() -> None:
    topics = [{"topic": "orders", "before": "A", "after": "B"}]
    (event,) = told(happened("subscription_changed", 1, "c1"), subscriptions={"c1": topics})
    assert event.details == {"topics": topics}


def test_first_subscription_of_a_member_is_part_of_its_joining() -> None:
    events = told(happened("member_joined", 1, "c1"), happened("subscription_changed", 2, "c1"))
    assert [event.kind for event in events] == ["joined"]


def test_fact_of_a_group_without_a_row_is_left_out() -> None:
    assert recording.events_of_watch(1, [happened("member_left", 1, "c1")], {}) == []


@pytest.fixture
def group(db: None) -> Group:
    cluster = Cluster.objects.create(name="local", namesrv="127.0.0.1:9876")
    return Group.objects.create(cluster=cluster, name="billing", seen_at=NOW)


def event(group: Group, revision: int, at: datetime = NOW) -> RebalanceEvent:
    return RebalanceEvent(
        cluster=group.cluster, group=group, at=at, kind="joined", source="watch", source_key=f"boot:{revision}"
    )


def test_fact_that_is_read_twice_is_stored_once(group: Group) -> None:
    recording.record([event(group, 1)])
    recording.record([event(group, 1), event(group, 2)])
    assert RebalanceEvent.objects.count() == 2


def test_old_events_are_pruned_by_age(group: Group) -> None:
    recording.record([event(group, 1, NOW - timedelta(days=8)), event(group, 2, NOW - timedelta(days=6))])
    assert retention.prune(NOW) == 1
    assert RebalanceEvent.objects.get().source_key == "boot:2"


def test_pages_of_the_timeline_follow_each_other_without_gap_or_repeat(group: Group) -> None:
    recording.record([event(group, number, NOW + timedelta(seconds=number // 2)) for number in range(5)])
    first = selectors.of_group(group.cluster_id, "billing", size=2)
    second = selectors.of_group(group.cluster_id, "billing", before=first.next_cursor, size=2)
    third = selectors.of_cluster(group.cluster_id, before=second.next_cursor, size=2)
    ids = [row.id for page in (first, second, third) for row in page.rows]
    assert len(ids) == len(set(ids)) == 5
    assert third.next_cursor == ""
    moments = [row.at for page in (first, second, third) for row in page.rows]
    assert moments == sorted(moments, reverse=True)


def test_garbage_for_a_cursor_begins_anew(group: Group) -> None:
    recording.record([event(group, 1)])
    assert len(selectors.of_group(group.cluster_id, "billing", before="garbage").rows) == 1
    assert len(selectors.of_group(group.cluster_id, "billing", before="2026-01-01_x").rows) == 1
