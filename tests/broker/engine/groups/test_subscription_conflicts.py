"""Where members of a group ask for different things: who, what, since when, with whom, and when it was over."""

from __future__ import annotations

import pytest

from broker.engine.groups.subscription_conflicts import CONFLICTS_MAX, OTHERS_MAX, SubscriptionConflicts
from remoting.wire.bodies.heartbeat import SubscriptionData


def wants(topic: str, text: str = "*", version: int = 1, kind: str = "TAG") -> SubscriptionData:
    return SubscriptionData(topic=topic, sub_string=text, sub_version=version, expression_type=kind)


@pytest.fixture
def group() -> SubscriptionConflicts:
    return SubscriptionConflicts()


def told(group: SubscriptionConflicts, member: str) -> list[tuple]:
    return [
        (each.topic, each.expression, each.since_ms, each.last_seen_ms, each.is_over, each.others)
        for each in group.snapshot()[member]
    ]


def test_members_that_ask_for_the_same_differ_in_nothing(group) -> None:
    group.record_heartbeat("a", "a@1", [wants("orders", "paid")], 10)
    group.record_heartbeat("b", "b@1", [wants("orders", "paid", version=7)], 20)
    assert told(group, "a") == told(group, "b") == []


def test_both_sides_of_a_disagreement_are_told_from_its_beginning(group) -> None:
    group.record_heartbeat("a", "a@1", [wants("orders", "paid")], 10)
    group.record_heartbeat("b", "b@1", [wants("orders", "refunded")], 20)
    group.refresh("a", 30)
    assert told(group, "a") == [("orders", ("TAG", "paid"), 20, 30, False, ["b@1"])]
    assert told(group, "b") == [("orders", ("TAG", "refunded"), 20, 20, False, ["a@1"])]


@pytest.mark.parametrize(
    ("other", "expression"),
    [([], None), ([wants("orders", "paid", kind="SQL92")], ("SQL92", "paid"))],
    ids=["one does not subscribe", "another type"],
)
def test_members_also_differ_by_type_and_by_not_subscribing(group, other, expression) -> None:
    group.record_heartbeat("a", "a@1", [wants("orders", "paid")], 10)
    group.record_heartbeat("b", "b@1", other, 20)
    assert told(group, "b") == [("orders", expression, 20, 20, False, ["a@1"])]
    assert [each[1] for each in told(group, "a")] == [("TAG", "paid")]


def test_what_is_over_is_remembered_until_the_member_leaves(group) -> None:
    group.record_heartbeat("a", "a@1", [wants("orders", "paid")], 10)
    group.record_heartbeat("b", "b@1", [wants("orders", "refunded")], 20)
    group.record_heartbeat("b", "b@1", [wants("orders", "paid", version=2)], 30)
    group.refresh("a", 40)
    assert told(group, "a") == [("orders", ("TAG", "paid"), 20, 20, True, [])]
    assert told(group, "b") == [("orders", ("TAG", "refunded"), 20, 20, True, [])]
    group.remove_member("b", 50)
    assert list(group.snapshot()) == ["a"]


def test_a_changed_mind_is_a_difference_of_its_own(group) -> None:
    group.record_heartbeat("a", "a@1", [wants("orders", "paid")], 10)
    group.record_heartbeat("b", "b@1", [wants("orders", "refunded")], 20)
    group.record_heartbeat("b", "b@1", [wants("orders", "lost", version=5)], 30)
    assert told(group, "b") == [
        ("orders", ("TAG", "refunded"), 20, 20, True, []),
        ("orders", ("TAG", "lost"), 30, 30, False, ["a@1"]),
    ]
    assert told(group, "a")[0][2:] == (20, 20, False, ["b@1"])


def test_the_last_one_who_differed_takes_the_disagreement_along(group) -> None:
    for name in ("a", "b"):
        group.record_heartbeat(name, f"{name}@1", [wants("orders")], 10)
    group.record_heartbeat("c", "c@1", [], 20)
    group.remove_member("c", 30)
    assert [each[4] for each in told(group, "a")] == [True]
    group.record_heartbeat("d", "d@1", [wants("orders")], 40)
    assert told(group, "d") == []


def test_the_version_told_is_that_of_the_last_heartbeat(group) -> None:
    group.record_heartbeat("a", "a@1", [wants("orders", "paid", version=1)], 10)
    group.record_heartbeat("b", "b@1", [wants("orders", "lost", version=2)], 20)
    group.record_heartbeat("a", "a@1", [wants("orders", "paid", version=9)], 30)
    (difference,) = group.snapshot()["a"]
    assert (difference.sub_version, difference.since_ms, difference.last_seen_ms) == (9, 20, 30)


def test_what_is_remembered_and_told_is_bounded(group) -> None:
    topics = [f"topic-{number}" for number in range(2 * CONFLICTS_MAX)]
    group.record_heartbeat("a", "a@1", [wants(topic) for topic in topics], 10)
    group.record_heartbeat("b", "b@1", [], 20)
    assert len(group.snapshot()["a"]) == len(group.snapshot()["b"]) == CONFLICTS_MAX
    for number in range(2 * CONFLICTS_MAX):
        group.record_heartbeat("b", "b@1", [wants("orders", str(number))], 30 + number)
    assert len(group.snapshot()["b"]) == CONFLICTS_MAX


def test_only_some_of_many_others_are_named(group) -> None:
    for number in range(2 * OTHERS_MAX):
        group.record_heartbeat(number, f"c@{number}", [wants("orders", str(number))], 200)
    ((*_, others),) = told(group, 0)
    assert others == [f"c@{number}" for number in range(1, OTHERS_MAX + 1)]
