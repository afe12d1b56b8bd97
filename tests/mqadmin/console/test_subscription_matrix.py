"""Member × topic × expression × version: the odd one is marked, and what the broker filters by is told beside."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from mqadmin.console.subscription_matrix import Cell, SubscriptionMatrix, subscription_matrix
from mqadmin.subscriptions.consistency import MemberView, Source, Wanted, findings
from mqadmin.subscriptions.selectors import ComparedGroup
from mqadmin.subscriptions.skipped import Skipped, SkippedMethod
from mqadmin.subscriptions.views_of_members import GroupView

SEEN = datetime(2026, 3, 1, tzinfo=UTC)


def wanted(topics: Mapping[str, str], version: int) -> dict[str, Wanted]:
    return {topic: Wanted(expression, "TAG", version, SEEN) for topic, expression in topics.items()}


def matrix(table: Mapping[str, str], **members: Mapping[str, str] | None) -> SubscriptionMatrix:
    """Members have the versions 1, 2, …; the broker's is that of the last."""
    views = [
        MemberView(
            client_id=client_id,
            joined_at=SEEN + timedelta(minutes=version),
            topics=None if topics is None else wanted(topics, version),
            source=Source.NOT_KNOWN if topics is None else Source.HEARTBEAT,
        )
        for version, (client_id, topics) in enumerate(members.items(), 1)
    ]
    view = GroupView(views, wanted(table, len(members)))
    found = findings(view.members, view.table)
    return subscription_matrix(
        ComparedGroup(
            view=view,
            findings=found,
            skipped=[Skipped(SkippedMethod.NOT_KNOWN) for _ in found],
            reasons={"silent": "timed out"},
            history=(),
            elsewhere=(),
        )
    )


def marked(found: SubscriptionMatrix) -> list[tuple[str, str]]:
    """Returns whose subscription to which topic is marked as the odd one."""
    rows = [(row.client_id, zip(found.topics, row.cells, strict=True)) for row in found.rows]
    return [(client_id, topic) for client_id, cells in rows for topic, cell in cells if cell.is_odd]


def cell(found: SubscriptionMatrix, client_id: str, topic: str) -> Cell:
    row = next(row for row in found.rows if row.client_id == client_id)
    return row.cells[found.topics.index(topic)]


def test_members_that_agree_with_the_broker_are_not_marked():
    found = matrix({"orders": "*"}, a={"orders": "*"}, b={"orders": "*"})
    assert not found.is_different
    assert found.summary == "All 2 members and the broker have the same subscription."


def test_the_one_that_differs_from_most_is_marked_though_the_broker_filters_by_what_it_wants():
    found = matrix({"orders": "B"}, a={"orders": "A"}, b={"orders": "A"}, c={"orders": "B"})
    assert marked(found) == [("c", "orders")]
    assert found.summary == "1 of 3 members wants something else than most of them, and is marked."
    assert [cell(found, one, "orders").is_unlike_broker for one in "abc"] == [True, True, False]


def test_of_equally_many_all_are_marked_and_it_is_said():
    found = matrix({"orders": "B", "stock": "*"}, a={"orders": "A", "stock": "*"}, b={"orders": "B", "stock": "*"})
    assert marked(found) == [("a", "orders"), ("b", "orders")]
    assert found.summary.startswith("No subscription to orders is in the majority")


def test_a_tie_of_the_two_most_wanted_marks_those_that_want_a_third_thing_too():
    found = matrix({}, a={"t": "A"}, b={"t": "A"}, c={"t": "B"}, d={"t": "B"}, e={"t": "C"})
    assert marked(found) == [(one, "t") for one in "abcde"]


def test_many_tied_topics_are_not_all_named():
    topics = [f"t{n}" for n in range(5)]
    found = matrix({}, a=dict.fromkeys(topics, "A"), b=dict.fromkeys(topics, "B"))
    assert "t0, t1, t2 … is" in found.summary


def test_a_cell_has_the_version_and_of_those_in_conflict_the_one_in_force_says_so():
    found = matrix({"orders": "B", "stock": "*"}, a={"orders": "A", "stock": "*"}, b={"orders": "B", "stock": "*"})
    assert [(row.client_id, [one.sub_version for one in row.cells]) for row in found.rows] == [
        ("", [2, 2]),
        ("a", [1, 1]),
        ("b", [2, 2]),
    ]
    assert (cell(found, "b", "orders").is_in_force, cell(found, "a", "orders").is_in_force) == (True, False)
    assert not cell(found, "b", "stock").is_in_force, "nobody contradicts it"


def test_members_that_agree_on_something_else_than_the_broker_has_are_not_odd_but_it_is_noted():
    found = matrix({"orders": "A", "stock": "*"}, a={"orders": "B", "stock": "*"})
    cells = next(line for line in found.rows if line.client_id == "a").cells
    assert [(one.expression, one.is_odd, one.is_unlike_broker) for one in cells] == [
        ("B", False, True),
        ("*", False, False),
    ]
    assert found.is_different
    assert found.summary.startswith("1 of 1 members subscribed")


def test_the_same_tags_in_another_order_are_not_marked():
    assert not matrix({"orders": "A || B"}, a={"orders": "B||A"}).is_different


def test_a_topic_that_one_member_lacks_is_marked_on_it():
    both = {"orders": "*", "stock": "*"}
    found = matrix(both, a=both, b=both, c={"orders": "*"})
    assert marked(found) == [("c", "stock")]
    assert cell(found, "c", "stock").expression == ""


def test_a_member_that_did_not_answer_is_not_accused_and_says_why():
    found = matrix({"orders": "A"}, a={"orders": "A"}, silent=None)
    row = next(line for line in found.rows if line.client_id == "silent")
    assert [(one.expression, one.is_odd, one.is_unlike_broker) for one in row.cells] == [(None, False, False)]
    assert row.reason == "timed out"
    assert found.summary == "The one member and the broker have the same subscription."


def test_without_the_broker_s_own_table_members_are_compared_with_each_other_alone():
    found = matrix({}, a={"orders": "A"}, b={"orders": "A"})
    assert not found.is_different
    assert "not known" in found.summary
    found = matrix({}, a={"orders": "A"}, b={"orders": "A"}, c={"orders": "B"})
    assert marked(found) == [("c", "orders")]


def test_the_whole_group_comes_first_and_the_retry_topic_last():
    found = matrix({"zebra": "*", "%RETRY%g": "*"}, a={"%RETRY%g": "*", "zebra": "*"})
    assert found.topics == ["zebra", "%RETRY%g"]
    assert [line.client_id for line in found.rows] == ["", "a"]
