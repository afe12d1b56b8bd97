"""What was counted at the last two midnights."""

from __future__ import annotations

from broker.engine.day_totals import DayTotals
from tests.support.stores import ManualClock

DAY_MS = 86_400_000


def test_a_midnight_moves_the_totals_on() -> None:
    clock = ManualClock()
    counted = [0]
    totals = DayTotals(lambda: counted[0], clock)
    counted[0] = 5
    totals.look()
    assert (totals.yesterday_morning, totals.this_morning, totals.now) == (0, 0, 5)
    clock.now_ms += DAY_MS
    totals.look()
    counted[0] = 7
    totals.look()
    assert (totals.yesterday_morning, totals.this_morning, totals.now) == (0, 5, 7)
    clock.now_ms += DAY_MS
    totals.look()
    assert (totals.yesterday_morning, totals.this_morning, totals.now) == (5, 7, 7)
