"""Who differs, in what, and whose expression the broker keeps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mqadmin.subscriptions.consistency import NEW_MEMBER, Finding, FindingKind, MemberView, Wanted, findings

BEGAN = datetime(2026, 3, 1, 9, tzinfo=UTC)


def member(client_id: str, joined_min: int = 0, **topics: str) -> MemberView:
    at = BEGAN + timedelta(minutes=joined_min)
    wanted = {topic: Wanted(expression, "TAG", int(at.timestamp() * 1000), at) for topic, expression in topics.items()}
    return MemberView(client_id=client_id, joined_at=at, topics=wanted)


def way(client_id: str, joined_min: int = 0, **said: Any) -> MemberView:
    at = BEGAN + timedelta(minutes=joined_min)
    return MemberView(client_id=client_id, joined_at=at, topics={"orders": Wanted("*", "TAG")}, **said)


def only(members: list[MemberView], table: dict[str, Wanted] | None = None) -> Finding:
    (found,) = findings(members, table or {})
    return found


@pytest.mark.parametrize(
    ("first", "second"),
    [("A || B", "B||A"), ("*", ""), ("A", " A "), ("A || *", "*")],
    ids=["another order of tags", "all and nothing said", "spaces", "one of them all"],
)
def test_expressions_that_mean_the_same_are_no_conflict(first: str, second: str) -> None:
    assert findings([member("a", orders=first), member("b", orders=second)], {}) == []


def test_a_property_that_looks_like_a_tag_is_another_expression() -> None:
    by_tag = MemberView(client_id="a", joined_at=BEGAN, topics={"orders": Wanted("A", "TAG")})
    by_sql = MemberView(client_id="b", joined_at=BEGAN, topics={"orders": Wanted("A", "SQL92")})
    assert only([by_tag, by_sql]).kind == FindingKind.EXPRESSION


def test_the_fewer_ones_are_odd_whenever_they_joined() -> None:
    found = only([member("early", 0, orders="B"), member("b", 5, orders="*"), member("c", 6, orders="*")])
    assert (found.kind, found.topic, found.odd) == (FindingKind.EXPRESSION, "orders", ("early",))
    assert (found.by_odd, found.by_rest, found.member_count) == ("B", "*", 3)
    assert found.since == BEGAN


def test_of_equally_many_those_are_odd_that_joined_later_and_all_are_marked() -> None:
    found = only([member("late", 9, orders="A"), member("early", 0, orders="B")])
    assert (found.odd, found.is_tie, found.marked) == (("late",), True, ("early", "late"))


def test_where_most_say_the_same_the_others_alone_are_marked() -> None:
    found = only([member("a", orders="*"), member("b", orders="*"), member("c", orders="A"), member("d", orders="B")])
    assert (found.is_tie, found.marked) == (False, ("c", "d"))


def test_members_that_do_not_read_a_topic_have_no_part_in_a_tie_of_its_expressions() -> None:
    found = findings([member("a", orders="A"), member("b", 1, orders="B"), member("c", 2, stock="*")], {})
    tied = {(one.kind, one.topic): one.marked for one in found if one.is_tie}
    assert tied == {(FindingKind.EXPRESSION, "orders"): ("a", "b")}


@pytest.mark.parametrize(("count", "is_tie"), [(1, True), (2, False)], ids=["as many", "fewer"])
def test_a_way_of_consuming_that_as_many_have_marks_all(count: int, is_tie: bool) -> None:
    orderly = [way(f"o{n}", is_orderly=True) for n in range(count)]
    found = only([*orderly, way("x", 9, is_orderly=False)])
    assert (found.odd, found.is_tie, "o0" in found.marked) == (("x",), is_tie, is_tie)


def test_a_topic_that_one_member_lacks_is_found_on_the_one_that_lacks_it() -> None:
    found = only([member("a", orders="*", stock="*"), member("b", orders="*", stock="*"), member("c", 3, orders="*")])
    assert (found.kind, found.topic, found.odd) == (FindingKind.TOPICS, "stock", ("c",))
    assert (found.by_odd, found.by_rest) == ("", "*")


def test_a_topic_that_one_member_alone_reads_is_found_on_that_one() -> None:
    found = only([member("a", orders="*"), member("b", orders="*"), member("c", 3, orders="*", stock="X")])
    assert (found.topic, found.odd, found.by_odd, found.by_rest) == ("stock", ("c",), "X", "")


def test_members_with_quite_different_topics_are_found_at_both() -> None:
    found = findings([member("a", 0, orders="*"), member("b", 1, stock="*")], {})
    assert [(one.kind, one.topic, one.odd) for one in found] == [
        (FindingKind.TOPICS, "orders", ("b",)),
        (FindingKind.TOPICS, "stock", ("b",)),
    ]


def test_the_winner_is_the_member_with_the_version_that_the_broker_keeps() -> None:
    members = [member("a", 0, orders="A"), member("b", 1, orders="A"), member("c", 2, orders="B")]
    kept = (members[2].topics or {})["orders"]
    found = only(members, {"orders": kept})
    assert (found.in_force, found.winner) == ("B", "c")


def test_an_expression_that_nobody_has_any_more_comes_from_one_that_left() -> None:
    found = only([member("a", orders="A"), member("b", orders="B")], {"orders": Wanted("C", "TAG", 7)})
    assert (found.in_force, found.winner) == ("C", "")


def test_the_retry_topic_is_nobodys_difference() -> None:
    with_retry = MemberView(
        client_id="a", joined_at=BEGAN, topics={"orders": Wanted("*", "TAG"), "%RETRY%g": Wanted("*", "TAG")}
    )
    assert findings([with_retry, member("b", orders="*")], {}) == []


def test_members_that_are_not_known_do_not_count() -> None:
    unknown = MemberView(client_id="x", joined_at=BEGAN, topics=None)
    assert findings([member("a", orders="*"), unknown], {}) == []
    assert only([member("a", orders="*"), unknown, member("b", 1, orders="B")]).member_count == 2


@pytest.mark.parametrize(
    ("kind", "theirs", "ours", "by_odd"),
    [
        (FindingKind.MODEL, {"message_model": "BROADCASTING"}, {"message_model": "CLUSTERING"}, "BROADCASTING"),
        (FindingKind.ORDER, {"is_orderly": True}, {"is_orderly": False}, "orderly"),
        (
            FindingKind.START,
            {"consume_from_where": "CONSUME_FROM_FIRST_OFFSET"},
            {"consume_from_where": "CONSUME_FROM_LAST_OFFSET"},
            "CONSUME_FROM_FIRST_OFFSET",
        ),
    ],
    ids=str,
)
def test_members_that_consume_in_another_way_are_found(
    kind: FindingKind, theirs: dict[str, Any], ours: dict[str, Any], by_odd: str
) -> None:
    found = only([way("a", **ours), way("b", **ours), way("c", **theirs), way("untold")])
    assert (found.kind, found.odd, found.by_odd, found.member_count) == (kind, ("c",), by_odd, 3)


def test_the_gravest_difference_comes_first() -> None:
    broadcasting = MemberView(
        client_id="b", joined_at=BEGAN, topics={"orders": Wanted("B", "TAG")}, message_model="BROADCASTING"
    )
    clustering = MemberView(
        client_id="a", joined_at=BEGAN, topics={"orders": Wanted("*", "TAG")}, message_model="CLUSTERING"
    )
    assert [one.kind for one in findings([clustering, broadcasting], {})] == [FindingKind.MODEL, FindingKind.EXPRESSION]


def test_a_member_that_is_only_asked_about_counts_as_the_latest() -> None:
    wanted = MemberView.wanting({"orders": Wanted("B", "TAG")})
    found = only([member("a", orders="*"), wanted])
    assert found.odd == (NEW_MEMBER,)
    assert found.since is None
