"""Member × topic × expression, compared with the subscription that the broker keeps for the whole group."""

from __future__ import annotations

from datetime import UTC, datetime

from mqadmin.clusters.models import Subscription
from mqadmin.console.subscription_matrix import subscription_matrix

SEEN = datetime(2026, 3, 1, tzinfo=UTC)


def row(client_id: str, topic: str, expression: str = "*") -> Subscription:
    return Subscription(client_id=client_id, topic_name=topic, expression=expression, first_seen_at=SEEN, seen_at=SEEN)


def test_members_that_agree_with_the_broker_are_not_marked():
    matrix = subscription_matrix([row("", "orders"), row("a", "orders"), row("b", "orders")])
    assert not matrix.is_different
    assert matrix.summary == "All 2 members and the broker have the same subscription."


def test_another_expression_is_marked_in_its_cell():
    matrix = subscription_matrix([row("", "orders", "A"), row("", "stock"), row("a", "orders", "B"), row("a", "stock")])
    cells = next(line for line in matrix.rows if line.client_id == "a").cells
    assert [(cell.expression, cell.is_different) for cell in cells] == [("B", True), ("*", False)]
    assert matrix.summary.startswith("1 of 1 members subscribed")


def test_a_topic_that_a_member_lacks_is_marked():
    matrix = subscription_matrix([row("", "orders"), row("", "stock"), row("a", "orders")])
    assert [cell.is_different for cell in matrix.rows[1].cells] == [False, True]


def test_without_the_broker_s_own_table_nobody_is_accused():
    matrix = subscription_matrix([row("a", "orders", "A"), row("b", "orders", "B")])
    assert not matrix.is_different
    assert "not known" in matrix.summary


def test_the_whole_group_comes_first_and_the_retry_topic_last():
    matrix = subscription_matrix([row("a", "%RETRY%g"), row("", "%RETRY%g"), row("", "zebra"), row("a", "zebra")])
    assert matrix.topics == ["zebra", "%RETRY%g"]
    assert [line.client_id for line in matrix.rows] == ["", "a"]
