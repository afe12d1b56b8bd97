"""Which messages a group's subscriptions would not let through, as a table."""

from __future__ import annotations

import pytest

from mqadmin.replays.choosing import OriginProperties, OriginTag
from mqadmin.replays.filtered import Expression, Filtered, Unmatched, filtered

PAID, REFUNDED, UNTAGGED = (OriginTag("orders", tag) for tag in ("paid", "refunded", ""))
ALL = (PAID, REFUNDED, UNTAGGED)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param([], Filtered(), id="no subscription is another matter"),
        pytest.param([Expression("*")], Filtered(), id="all"),
        pytest.param([Expression("paid")], Filtered(unwanted=(REFUNDED, UNTAGGED)), id="one tag"),
        pytest.param([Expression("paid || refunded")], Filtered(unwanted=(UNTAGGED,)), id="two tags"),
        pytest.param([Expression("paid"), Expression("refunded")], Filtered(unwanted=(UNTAGGED,)), id="two members"),
        pytest.param([Expression("||")], Filtered(unwanted=ALL), id="an expression that lets nothing through"),
        pytest.param([Expression("paid", "")], Filtered(unwanted=(REFUNDED, UNTAGGED)), id="no kind is tags"),
    ],
)
def test_a_tag_that_no_subscription_has_is_filtered(wanted: list[Expression], expected: Filtered) -> None:
    assert filtered(ALL, (), {"orders": wanted, "other": [Expression("*")]}) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param([Expression("amount > 5", "SQL92")], Filtered(unmatched=(Unmatched("orders", 2, 4),)), id="SQL"),
        pytest.param([Expression("amount IS NOT NULL OR TAGS IS NULL", "SQL92")], Filtered(), id="all match"),
        pytest.param(
            [Expression("amount > 5", "SQL92"), Expression("paid")],
            Filtered(unmatched=(Unmatched("orders", 1, 4),)),
            id="a member by properties, another one by tags",
        ),
        pytest.param([Expression("amount >", "SQL92")], Filtered(unclear=("orders",)), id="no SQL92"),
        pytest.param([Expression("amount > 5", "groovy")], Filtered(unclear=("orders",)), id="of another kind"),
    ],
)
def test_messages_whose_properties_match_no_subscription_are_counted(
    wanted: list[Expression], expected: Filtered
) -> None:
    messages = [
        OriginProperties("orders", {"TAGS": "paid", "amount": "3"}),
        OriginProperties("orders", {"TAGS": "refunded", "amount": "9"}),
        OriginProperties("orders", {"TAGS": "refunded", "amount": "10"}),
        OriginProperties("orders", {}),
        OriginProperties("other", {"amount": "1"}),
    ]
    assert filtered(ALL, messages, {"orders": wanted, "other": [Expression("*")]}) == expected


def test_a_topic_of_which_nothing_was_looked_at_is_unclear() -> None:
    assert filtered(ALL, (), {"orders": [Expression("amount > 5", "SQL92")]}) == Filtered(unclear=("orders",))
