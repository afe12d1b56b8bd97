"""Member × topic × expression, compared with the subscription that the broker keeps for the whole group."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from mqadmin.console.subscription_matrix import SubscriptionMatrix, subscription_matrix
from mqadmin.subscriptions.consistency import MemberView, Source, Wanted
from mqadmin.subscriptions.selectors import ComparedGroup
from mqadmin.subscriptions.views_of_members import GroupView

SEEN = datetime(2026, 3, 1, tzinfo=UTC)


def wanted(topics: Mapping[str, str]) -> dict[str, Wanted]:
    return {topic: Wanted(expression, "TAG", 1, SEEN) for topic, expression in topics.items()}


def matrix(table: Mapping[str, str], **members: Mapping[str, str] | None) -> SubscriptionMatrix:
    views = [
        MemberView(
            client_id=client_id,
            joined_at=SEEN,
            topics=None if topics is None else wanted(topics),
            source=Source.NOT_KNOWN if topics is None else Source.HEARTBEAT,
        )
        for client_id, topics in members.items()
    ]
    return subscription_matrix(
        ComparedGroup(
            view=GroupView(views, wanted(table)),
            findings=(),
            skipped=(),
            reasons={"silent": "timed out"},
            history=(),
            elsewhere=(),
        )
    )


def test_members_that_agree_with_the_broker_are_not_marked():
    found = matrix({"orders": "*"}, a={"orders": "*"}, b={"orders": "*"})
    assert not found.is_different
    assert found.summary == "All 2 members and the broker have the same subscription."


def test_another_expression_is_marked_in_its_cell():
    found = matrix({"orders": "A", "stock": "*"}, a={"orders": "B", "stock": "*"})
    cells = next(line for line in found.rows if line.client_id == "a").cells
    assert [(cell.expression, cell.is_different) for cell in cells] == [("B", True), ("*", False)]
    assert found.summary.startswith("1 of 1 members subscribed")


def test_the_same_tags_in_another_order_are_not_marked():
    assert not matrix({"orders": "A || B"}, a={"orders": "B||A"}).is_different


def test_a_topic_that_a_member_lacks_is_marked():
    found = matrix({"orders": "*", "stock": "*"}, a={"orders": "*"})
    assert [cell.is_different for cell in found.rows[1].cells] == [False, True]


def test_a_member_that_did_not_answer_is_not_accused_and_says_why():
    found = matrix({"orders": "A"}, a={"orders": "A"}, silent=None)
    row = next(line for line in found.rows if line.client_id == "silent")
    assert [(cell.expression, cell.is_different) for cell in row.cells] == [(None, False)]
    assert row.reason == "timed out"
    assert found.summary == "The one member and the broker have the same subscription."


def test_without_the_broker_s_own_table_nobody_is_accused():
    found = matrix({}, a={"orders": "A"}, b={"orders": "B"})
    assert not found.is_different
    assert "not known" in found.summary


def test_the_whole_group_comes_first_and_the_retry_topic_last():
    found = matrix({"zebra": "*", "%RETRY%g": "*"}, a={"%RETRY%g": "*", "zebra": "*"})
    assert found.topics == ["zebra", "%RETRY%g"]
    assert [line.client_id for line in found.rows] == ["", "a"]
