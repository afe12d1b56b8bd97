"""The planner alone: rows and observations in, changed rows out, no database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mqadmin.clusters.models import Group, Member, Subscription, Topic, TopicKind
from mqadmin.observing import plan
from mqadmin.observing.observation import (
    ConsumptionObserved,
    GroupObserved,
    GroupSettingsObserved,
    MemberObserved,
    QueueObserved,
    SubscriptionKey,
    TopicObserved,
)
from mqadmin.observing.plan import GroupWord
from remoting.wire.bodies.message_queue import MessageQueue

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
EARLIER = NOW - timedelta(minutes=5)
GROUP = 7
QUEUE = MessageQueue("orders", "broker-a", 0)
SETTINGS = GroupSettingsObserved(is_consume_enabled=True, retry_times_max=16)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("orders", TopicKind.NORMAL),
        ("%RETRY%billing", TopicKind.RETRY),
        ("%DLQ%billing", TopicKind.DEAD_LETTER),
        ("SCHEDULE_TOPIC_XXXX", TopicKind.SYSTEM),
        ("rmq_sys_anything", TopicKind.SYSTEM),
        ("RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC", TopicKind.SYSTEM),
        ("broker-a", TopicKind.SYSTEM),
        ("broker-a_REPLY_TOPIC", TopicKind.SYSTEM),
        ("orders_REPLY_TOPIC", TopicKind.NORMAL),
    ],
)
def test_kind_of_a_topic_follows_from_its_name(name: str, kind: TopicKind) -> None:
    assert plan.topic_kind(name, frozenset(["broker-a"])) == kind


def test_unchanged_topic_is_not_written() -> None:
    row = Topic(pk=1, name="orders", read_queue_count=4, write_queue_count=4, perm=6, seen_at=EARLIER)
    seen = TopicObserved("orders", 4, 4, 6)
    assert plan.topics(1, {"orders": row}, [seen], NOW, frozenset()) == []
    more = TopicObserved("orders", 8, 8, 6)
    assert plan.topics(1, {"orders": row}, [more], NOW, frozenset()) == [row]
    assert (row.read_queue_count, row.seen_at) == (8, NOW)


def test_queue_of_a_topic_without_a_row_is_left_out() -> None:
    seen = [QueueObserved(QUEUE, 0, 5, NOW)]
    assert plan.topic_queues({}, {}, seen, NOW) == []
    rows = plan.topic_queues({"orders": 3}, {}, seen, NOW)
    assert [(row.topic_id, row.max_offset) for row in rows] == [(3, 5)]


def test_unchanged_queue_is_not_written() -> None:
    row = plan.topic_queues({"orders": 3}, {}, [QueueObserved(QUEUE, 0, 5, NOW)], NOW)[0]
    row.pk = 1
    identity = plan.QueueIdentity(3, "broker-a", 0)
    assert plan.topic_queues({"orders": 3}, {identity: row}, [QueueObserved(QUEUE, 0, 5, NOW)], NOW) == []


@pytest.mark.parametrize(
    ("told", "broker", "word", "is_settled"),
    [
        (GroupObserved(name="g"), "", GroupWord(None, None, {}), True),
        (GroupObserved(name="g", members=()), "", GroupWord(True, 16, {}), False),
        (GroupObserved(name="g", settings=SETTINGS), "", GroupWord(True, 16, {}), True),
        (GroupObserved(name="g", settings=SETTINGS), "", GroupWord(True, 3, {}), False),
        (GroupObserved(name="g", settings=SETTINGS), "", GroupWord(True, 16, {"a": [True, 16]}), False),
        (GroupObserved(name="g", settings=SETTINGS), "a", GroupWord(False, 16, {"a": [True, 16]}), True),
        (GroupObserved(name="g", settings=SETTINGS), "b", GroupWord(True, 16, {"a": [True, 16]}), False),
    ],
    ids=["a commit", "members", "same", "other", "watched before", "same of the broker", "another broker"],
)
def test_row_that_says_what_is_observed_is_not_read(
    told: GroupObserved, broker: str, word: GroupWord, is_settled: bool
) -> None:
    assert plan.is_settled(told, word, broker) == is_settled


def member(client_id: str = "c1", **fields: Any) -> MemberObserved:
    values: dict[str, Any] = {"address": "10.0.0.7:1", "language": "JAVA", "version": 493}
    return MemberObserved(client_id=client_id, **(values | fields))


def member_row(client_id: str, **fields: Any) -> Member:
    values: dict[str, Any] = {
        "pk": 1,
        "address": "10.0.0.7:1",
        "language": "JAVA",
        "version": 493,
        "first_seen_at": EARLIER,
        "seen_at": EARLIER,
    }
    return Member(group_id=GROUP, client_id=client_id, **(values | fields))


def test_new_member_joined_and_missing_one_is_gone() -> None:
    rows = {"c1": member_row("c1")}
    changes = plan.members(GROUP, rows, [member("c2")], NOW)
    assert (changes.joined, changes.gone) == (["c2"], ["c1"])
    assert rows["c1"].left_at == NOW


def test_member_that_comes_back_joined_again() -> None:
    row = member_row("c1", left_at=EARLIER)
    changes = plan.members(GROUP, {"c1": row}, [member("c1")], NOW)
    assert (changes.joined, row.left_at, row.first_seen_at) == (["c1"], None, EARLIER)


def test_member_that_left_before_is_not_gone_again() -> None:
    row = member_row("c1", left_at=EARLIER)
    changes = plan.members(GROUP, {"c1": row}, [], NOW)
    assert (changes.changed, changes.gone, row.left_at) == ([], [], EARLIER)


def test_changed_expression_ends_one_row_and_begins_another() -> None:
    old_key = SubscriptionKey("c1", "orders", "A", "TAG")
    old = Subscription(pk=1, group_id=GROUP, client_id="c1", topic_name="orders", expression="A")
    new_key = old_key._replace(expression="B")
    changes = plan.subscriptions(GROUP, {old_key: old}, {new_key: 2}, NOW)
    assert changes.ended == [old]
    assert old.ended_at == NOW
    assert [(row.expression, row.first_seen_at) for row in changes.begun] == [("B", NOW)]


def test_newer_version_of_the_same_expression_is_the_same_row() -> None:
    key = SubscriptionKey("c1", "orders", "A", "TAG")
    row = Subscription(pk=1, group_id=GROUP, sub_version=1, first_seen_at=EARLIER)
    changes = plan.subscriptions(GROUP, {key: row}, {key: 2}, NOW)
    assert (changes.begun, changes.renewed, changes.ended) == ([], [row], [])
    assert (row.sub_version, row.first_seen_at) == (2, EARLIER)


def test_way_of_consuming_stays_known_while_nobody_is_online() -> None:
    row = Group(pk=1, name="billing", message_model="CLUSTERING", seen_at=EARLIER)
    offline = GroupObserved(
        name="billing",
        settings=GroupSettingsObserved(is_consume_enabled=True, retry_times_max=16),
        consumption=ConsumptionObserved("", "", ""),
        members=(),
    )
    plan.groups(1, {"billing": row}, [offline], NOW)
    assert (row.message_model, row.member_count, row.retry_times_max) == ("CLUSTERING", 0, 16)


def test_members_that_were_not_asked_for_stay_as_they_are() -> None:
    row = Group(pk=1, name="billing", member_count=3, members_seen_at=EARLIER, seen_at=EARLIER)
    assert plan.groups(1, {"billing": row}, [GroupObserved(name="billing")], NOW) == []
    assert (row.member_count, row.members_seen_at) == (3, EARLIER)


def test_group_of_rocketmq_itself_is_marked() -> None:
    rows = plan.groups(1, {}, [GroupObserved(name="TOOLS_CONSUMER"), GroupObserved(name="billing")], NOW)
    assert [row.is_system for row in rows] == [True, False]


def test_queue_that_nobody_told_of_was_never_written_to() -> None:
    seen = [
        TopicObserved("orders", 2, 3, 6),
        TopicObserved("SCHEDULE_TOPIC_XXXX", 18, 18, 6),
        TopicObserved("gone", 1, 1, 6),
    ]
    known = {plan.QueueIdentity(3, "broker-a", 1)}
    rows = plan.unwritten_queues({"orders": 3, "SCHEDULE_TOPIC_XXXX": 4}, known, seen, "broker-a", NOW)
    assert [(row.topic_id, row.queue_id, row.max_offset) for row in rows] == [(3, 0, 0), (3, 2, 0)]
