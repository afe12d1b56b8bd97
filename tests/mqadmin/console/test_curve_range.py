"""Ranges of curves: what an address names, what lies beside it, and what a click into it shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mqadmin.console.curve_range import CurveRange, read_range

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


def test_an_address_is_read_as_it_was_written() -> None:
    at = CurveRange("6h", NOW - timedelta(hours=3), "orders/broker-a/0")
    assert at.address == "?range=6h&until=2026-11-23T09%3A00%3A00Z&queue=orders%2Fbroker-a%2F0"
    assert read_range({"range": "6h", "until": "2026-11-23T09:00:00Z", "queue": "orders/broker-a/0"}) == at


@pytest.mark.parametrize("until", ["", "soon", "0001-01-01T00:00:00+14:00"])
def test_what_can_t_be_read_counts_as_not_said(until: str) -> None:
    assert read_range({"range": "1y", "until": until}) == CurveRange()


@pytest.mark.parametrize(
    ("until", "ends"),
    [
        (None, NOW),
        (NOW + timedelta(days=1), NOW),
        (NOW - timedelta(hours=3), NOW - timedelta(hours=3)),
        (NOW - timedelta(days=30), NOW - timedelta(hours=48)),
    ],
)
def test_it_ends_within_the_hot_window(until: datetime | None, ends: datetime) -> None:
    assert CurveRange("1h", until).ends(NOW) == (ends - timedelta(hours=1), ends)


def test_earlier_and_later_lead_there_and_back() -> None:
    now = CurveRange("1h")
    earlier = now.earlier(NOW)
    assert earlier == CurveRange("1h", NOW - timedelta(hours=1))
    assert now.later(NOW) is None
    assert earlier.later(NOW) == now
    assert CurveRange("48h").earlier(NOW) is None


def test_a_click_shows_the_next_shorter_range_around_its_place() -> None:
    middle = NOW - timedelta(hours=10)
    assert CurveRange("24h", queue="q").zoomed(middle, NOW) == CurveRange("6h", middle + timedelta(hours=3), "q")
    assert CurveRange("6h").zoomed(NOW - timedelta(minutes=5), NOW) == CurveRange("1h")
    assert CurveRange("15m").zoomed(middle, NOW) is None


def test_the_moments_below_a_curve_have_the_day_where_it_is_long() -> None:
    assert CurveRange("1h").ticks(NOW) == ["11:00", "11:15", "11:30", "11:45", "12:00"]
    assert CurveRange("48h").ticks(NOW)[0] == "11-21 12:00"
