"""Which messages a group's subscriptions would not let through, as a table."""

from __future__ import annotations

import pytest

from mqadmin.replays.choosing import OriginTag
from mqadmin.replays.filtered import Expression, Filtered, filtered

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
        pytest.param([Expression("TAGS = 'paid'", "SQL92")], Filtered(unclear=("orders",)), id="SQL"),
        pytest.param([Expression("a = 1", "SQL92"), Expression("paid")], Filtered(unclear=("orders",)), id="both"),
    ],
)
def test_a_tag_that_no_subscription_has_is_filtered(wanted: list[Expression], expected: Filtered) -> None:
    assert filtered(ALL, {"orders": wanted, "other": [Expression("*")]}) == expected
