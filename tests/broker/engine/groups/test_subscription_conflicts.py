"""Where members of a group ask for different things: who, what, since when, with whom, and when it was over."""

from __future__ import annotations

import pytest

from broker.engine.groups.subscription_conflicts import DIFFERENCES_MAX, OTHERS_MAX, Differences
from remoting.wire.bodies.heartbeat import SubscriptionData


def wants(topic: str, text: str = "*", version: int = 1, kind: str = "TAG") -> SubscriptionData:
    return SubscriptionData(topic=topic, sub_string=text, sub_version=version, expression_type=kind)


@pytest.fixture
def group() -> Differences:
    return Differences()


def told(group: Differences, member: str) -> list[tuple]:
    return [
        (each.topic, each.wish, each.since_ms, each.last_seen_ms, each.is_over, each.others)
        for each in group.told()[member]
    ]


def test_members_that_ask_for_the_same_differ_in_nothing(group) -> None:
    group.asked("a", "a@1", [wants("orders", "paid")], 10)
    group.asked("b", "b@1", [wants("orders", "paid", version=7)], 20)
    assert told(group, "a") == told(group, "b") == []


def test_both_sides_of_a_disagreement_are_told_from_its_beginning(group) -> None:
    group.asked("a", "a@1", [wants("orders", "paid")], 10)
    group.asked("b", "b@1", [wants("orders", "refunded")], 20)
    group.seen("a", 30)
    assert told(group, "a") == [("orders", ("TAG", "paid"), 20, 30, False, ["b@1"])]
    assert told(group, "b") == [("orders", ("TAG", "refunded"), 20, 20, False, ["a@1"])]


@pytest.mark.parametrize(
    ("other", "wish"),
    [([], None), ([wants("orders", "paid", kind="SQL92")], ("SQL92", "paid"))],
    ids=["one does not subscribe", "another type"],
)
def test_members_also_differ_by_type_and_by_not_subscribing(group, other, wish) -> None:
    group.asked("a", "a@1", [wants("orders", "paid")], 10)
    group.asked("b", "b@1", other, 20)
    assert told(group, "b") == [("orders", wish, 20, 20, False, ["a@1"])]
    assert [each[1] for each in told(group, "a")] == [("TAG", "paid")]


def test_what_is_over_is_remembered_until_the_member_leaves(group) -> None:
    group.asked("a", "a@1", [wants("orders", "paid")], 10)
    group.asked("b", "b@1", [wants("orders", "refunded")], 20)
    group.asked("b", "b@1", [wants("orders", "paid", version=2)], 30)
    group.seen("a", 40)
    assert told(group, "a") == [("orders", ("TAG", "paid"), 20, 20, True, [])]
    assert told(group, "b") == [("orders", ("TAG", "refunded"), 20, 20, True, [])]
    group.left("b", 50)
    assert list(group.told()) == ["a"]


def test_a_changed_mind_is_a_difference_of_its_own(group) -> None:
    group.asked("a", "a@1", [wants("orders", "paid")], 10)
    group.asked("b", "b@1", [wants("orders", "refunded")], 20)
    group.asked("b", "b@1", [wants("orders", "lost", version=5)], 30)
    assert told(group, "b") == [
        ("orders", ("TAG", "refunded"), 20, 20, True, []),
        ("orders", ("TAG", "lost"), 30, 30, False, ["a@1"]),
    ]
    assert told(group, "a")[0][2:] == (20, 20, False, ["b@1"])


def test_the_last_one_who_differed_takes_the_disagreement_along(group) -> None:
    for name in ("a", "b"):
        group.asked(name, f"{name}@1", [wants("orders")], 10)
    group.asked("c", "c@1", [], 20)
    group.left("c", 30)
    assert [each[4] for each in told(group, "a")] == [True]
    group.asked("d", "d@1", [wants("orders")], 40)
    assert told(group, "d") == []


def test_the_version_told_is_that_of_the_last_heartbeat(group) -> None:
    group.asked("a", "a@1", [wants("orders", "paid", version=1)], 10)
    group.asked("b", "b@1", [wants("orders", "lost", version=2)], 20)
    group.asked("a", "a@1", [wants("orders", "paid", version=9)], 30)
    (difference,) = group.told()["a"]
    assert (difference.sub_version, difference.since_ms, difference.last_seen_ms) == (9, 20, 30)


def test_what_is_remembered_and_told_is_bounded(group) -> None:
    topics = [f"topic-{number}" for number in range(2 * DIFFERENCES_MAX)]
    group.asked("a", "a@1", [wants(topic) for topic in topics], 10)
    group.asked("b", "b@1", [], 20)
    assert len(group.told()["a"]) == len(group.told()["b"]) == DIFFERENCES_MAX
    for number in range(2 * DIFFERENCES_MAX):
        group.asked("b", "b@1", [wants("orders", str(number))], 30 + number)
    assert len(group.told()["b"]) == DIFFERENCES_MAX


def test_only_some_of_many_others_are_named(group) -> None:
    for number in range(2 * OTHERS_MAX):
        group.asked(number, f"c@{number}", [wants("orders", str(number))], 200)
    ((*_, others),) = told(group, 0)
    assert others == [f"c@{number}" for number in range(1, OTHERS_MAX + 1)]
