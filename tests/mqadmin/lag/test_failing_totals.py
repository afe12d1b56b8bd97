"""What of the numbers that brokers tell is kept to count failures by."""

from __future__ import annotations

import pytest

from mqadmin.lag.failing import QUEUES_MAX, TOTAL_MAX, FailingSample, Totals, appended
from mqadmin.lag.failing_totals import Ends, totals_of


@pytest.mark.parametrize(
    ("consumed", "ends", "totals"),
    [
        (40, {"%DLQ%billing": (7, 1), "%RETRY%billing": (12, 2)}, Totals(7, 12, 40, 1, 2)),
        (None, {}, Totals(0, 0, 0, 0, 0)),
        (40, {"%RETRY%billing": (None, 1)}, Totals(0, 0, 40, 0, 1)),
        # Apache's brokers tell -1 for a queue of which nothing was ever committed.
        (-4, {"%DLQ%billing": (-1, 1)}, Totals(0, 0, 0, 1, 0)),
        (2**70, {"%DLQ%billing": (2**70, 10**6)}, Totals(TOTAL_MAX, 0, TOTAL_MAX, QUEUES_MAX, 0)),
    ],
    ids=["known", "no topics", "retries not asked for", "never committed", "absurd"],
)
def test_totals_of_a_group_can_be_kept_whatever_brokers_tell(consumed: int | None, ends: Ends, totals: Totals) -> None:
    assert totals_of("billing", consumed, ends) == totals
    assert appended(b"", FailingSample(1_000_000_000, totals))


@pytest.mark.parametrize("ends", [None, {"%DLQ%billing": (None, 1)}])
def test_totals_that_are_not_known_are_not_made_up(ends: Ends | None) -> None:
    assert totals_of("billing", 40, ends) is None
