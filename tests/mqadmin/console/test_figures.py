"""The one spelling of counts, rates, durations and ages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mqadmin.console import figures

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (0, "0 s"),
        (400, "0.4 s"),
        (9_000, "9 s"),
        (42_900, "42 s"),
        (80_000, "1 m 20 s"),
        (1_264_000, "21 m 04 s"),
        (7_500_000, "2 h 05 m"),
        (277_200_000, "3 d 05 h"),
        (-80_000, "−1 m 20 s"),
    ],
)
def test_durations_have_two_units_at_most(duration_ms, text):
    assert figures.duration_text(duration_ms) == text


@pytest.mark.parametrize(
    ("per_second", "text"), [(0, "0"), (0.02, "< 0.1"), (0.42, "0.4"), (38.2, "38"), (8410.4, "8,410")]
)
def test_rates_keep_a_tenth_only_where_it_says_something(per_second, text):
    assert figures.rate_text(per_second) == text


def test_counts_have_thousands_separators():
    assert figures.count_text(12_049) == "12,049"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "now"), (4, "4 s ago"), (59, "59 s ago"), (60, "1 m ago"), (7200, "2 h ago"), (200_000, "2 d ago")],
)
def test_ages_have_one_unit(seconds, text):
    assert figures.age_text(NOW - timedelta(seconds=seconds), NOW) == text


def test_a_clock_that_is_ahead_by_seconds_is_now_and_by_more_is_said():
    assert figures.age_text(NOW + timedelta(seconds=5), NOW) == "now"
    assert figures.age_text(NOW + timedelta(minutes=5), NOW) == "in 5 m"


def test_duration_that_somebody_chose_has_one_unit_where_that_is_exact():
    assert [figures.round_duration_text(seconds) for seconds in (15, 60, 90, 86_400)] == [
        "15 s",
        "1 m",
        "1 m 30 s",
        "1 d",
    ]
