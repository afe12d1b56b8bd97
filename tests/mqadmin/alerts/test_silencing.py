"""Silences: once, weekly, over midnight, in zones, and where a clock is put forward or back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mqadmin.alerts.silencing import Silence, silenced

WEEKDAYS = frozenset(range(5))
ALL_DAYS = frozenset(range(7))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def weekly(days: frozenset[int], begins: str, ends: str, zone: str = "UTC") -> Silence:
    minutes = [int(one[:2]) * 60 + int(one[3:]) for one in (begins, ends)]
    return Silence(cluster="prod", weekdays=days, from_minute=minutes[0], to_minute=minutes[1], zone=zone)


def test_once_it_holds_from_its_begin_until_before_its_end() -> None:
    silence = Silence(cluster="prod", starts_at=utc("2026-03-02T10:00"), ends_at=utc("2026-03-02T11:00"))
    quiet = [silence.is_quiet(utc(f"2026-03-02T{one}")) for one in ("09:59:59", "10:00", "10:59:59", "11:00")]
    assert quiet == [False, True, True, False]


@pytest.mark.parametrize(
    ("silence", "at", "quiet"),
    [
        (weekly(frozenset({0}), "22:00", "23:00"), "2026-03-02T22:00", True),
        (weekly(frozenset({0}), "22:00", "23:00"), "2026-03-02T23:00", False),
        (weekly(frozenset({0}), "22:00", "23:00"), "2026-03-03T22:30", False),
        # Over midnight it belongs to the day on which it begins.
        (weekly(frozenset({4}), "22:00", "06:00"), "2026-03-07T05:59", True),
        (weekly(frozenset({4}), "22:00", "06:00"), "2026-03-07T06:00", False),
        (weekly(frozenset({4}), "22:00", "06:00"), "2026-03-06T05:00", False),
        (weekly(frozenset({6}), "22:00", "06:00"), "2026-03-02T03:00", True),
        # The same time twice is a whole day.
        (weekly(frozenset({0}), "08:00", "08:00"), "2026-03-03T07:59", True),
        # 22:00 in Shanghai is 14:00 UTC, the whole year.
        (weekly(WEEKDAYS, "22:00", "23:00", "Asia/Shanghai"), "2026-03-02T14:30", True),
        (weekly(WEEKDAYS, "22:00", "23:00", "Asia/Shanghai"), "2026-07-06T14:30", True),
        # Sunday evening in UTC is Monday morning in Shanghai.
        (weekly(frozenset({0}), "00:00", "08:00", "Asia/Shanghai"), "2026-03-01T16:30", True),
        # 22:00 in Berlin is 21:00 UTC in winter, 20:00 in summer.
        (weekly(ALL_DAYS, "22:00", "23:00", "Europe/Berlin"), "2026-01-05T21:30", True),
        (weekly(ALL_DAYS, "22:00", "23:00", "Europe/Berlin"), "2026-07-06T20:30", True),
        (weekly(ALL_DAYS, "22:00", "23:00", "Europe/Berlin"), "2026-07-06T21:30", False),
    ],
)
def test_weekly_by_the_clock_of_its_zone(silence: Silence, at: str, quiet: bool) -> None:
    assert silence.is_quiet(utc(at)) is quiet


@pytest.mark.parametrize(
    ("begins", "ends", "night", "minutes"),
    [
        ("02:00", "04:00", "2026-03-28T22:00", 60),  # the clock goes from 02:00 to 03:00
        ("02:15", "02:45", "2026-03-28T22:00", 0),
        ("02:00", "04:00", "2026-10-24T22:00", 180),  # 02:00 to 03:00 comes twice
        ("02:00", "04:00", "2026-06-01T22:00", 120),
    ],
)
def test_a_window_goes_with_a_clock_that_is_put_forward_or_back(
    begins: str, ends: str, night: str, minutes: int
) -> None:
    silence = weekly(ALL_DAYS, begins, ends, "Europe/Berlin")
    assert sum(silence.is_quiet(utc(night) + timedelta(minutes=one)) for one in range(8 * 60)) == minutes


def test_a_weekly_one_may_have_an_end() -> None:
    silence = Silence(cluster="prod", weekdays=ALL_DAYS, from_minute=0, to_minute=0, ends_at=utc("2026-03-02T10:00"))
    assert silence.is_quiet(utc("2026-03-02T09:59"))
    assert not silence.is_quiet(utc("2026-03-02T10:00"))


def test_a_silence_is_about_its_cluster_names_and_rules() -> None:
    silence = Silence(cluster="prod", names="billing-*", rules="stall*")
    at = utc("2026-03-02T10:00")
    assert silenced([silence], "prod", "billing-eu", "stalled", at)
    assert not silenced([silence], "test", "billing-eu", "stalled", at)
    assert not silenced([silence], "prod", "orders", "stalled", at)
    assert not silenced([silence], "prod", "billing-eu", "objective", at)
    assert not silenced([], "prod", "billing-eu", "stalled", at)
