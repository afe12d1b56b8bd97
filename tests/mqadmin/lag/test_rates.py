from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mqadmin.lag.rates import INTERVAL_S_MAX, Rate, rate

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_first_total_gives_no_rate() -> None:
    assert rate(Rate(None, None, None), 100, NOW) == Rate(NOW, 100, None)


def test_rate_is_counted_over_the_interval() -> None:
    assert rate(Rate(NOW, 100, None), 300, later(20)) == Rate(later(20), 300, 10.0)


def test_too_short_an_interval_keeps_what_is_known() -> None:
    known = Rate(NOW, 100, 7.0)
    assert rate(known, 900, later(1)) == known


def test_rate_falls_to_zero_when_nothing_comes() -> None:
    assert rate(Rate(NOW, 100, 7.0), 100, later(10)).per_s == 0


def test_long_gap_or_shrunken_total_begins_anew() -> None:
    assert rate(Rate(NOW, 100, 7.0), 900, later(INTERVAL_S_MAX + 1)).per_s is None
    assert rate(Rate(NOW, 100, 7.0), 5, later(10)) == Rate(later(10), 5, None)
