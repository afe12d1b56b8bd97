"""Weeks and months, named as addresses name them."""

from __future__ import annotations

from datetime import date

import pytest

from mqadmin.reports.periods import month_of, read_period, week_of


@pytest.mark.parametrize(
    ("text", "since", "until", "before", "after"),
    [
        ("2026-W47", date(2026, 11, 16), date(2026, 11, 22), "2026-W46", "2026-W48"),
        ("2026-W53", date(2026, 12, 28), date(2027, 1, 3), "2026-W52", "2027-W01"),
        ("2026-01", date(2026, 1, 1), date(2026, 1, 31), "2025-12", "2026-02"),
        ("2028-02", date(2028, 2, 1), date(2028, 2, 29), "2028-01", "2028-03"),
    ],
)
def test_a_period_is_read_and_knows_its_neighbours(
    text: str, since: date, until: date, before: str, after: str
) -> None:
    period = read_period(text)
    assert (period.since, period.until, period.key) == (since, until, text)
    assert (period.before.key, period.after.key) == (before, after)
    assert (period.days[0], period.days[-1]) == (since, until)


@pytest.mark.parametrize("text", ["2026", "2026-13", "2026-W00", "2026-W60", "2026-11-22", "week"])
def test_what_is_no_week_and_no_month_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_period(text)


def test_a_day_is_in_its_week_and_its_month() -> None:
    assert week_of(date(2027, 1, 1)).key == "2026-W53"
    assert month_of(date(2026, 12, 31)).key == "2026-12"
