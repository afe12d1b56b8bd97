"""When a segment goes: pure, in UTC."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from broker.engine.retention.rules import HOUR_MS, due_ms, parse_hours

HOURS_72 = 72 * HOUR_MS


def at(day: int, hour: int, minute: int = 0) -> int:
    return int(datetime(2026, 11, day, hour, minute, tzinfo=UTC).timestamp()) * 1000


def due(closed_ms: int, hours: str, now_ms: int) -> int | None:
    return due_ms(closed_ms, HOURS_72, parse_hours(hours), now_ms, time.gmtime)


@pytest.mark.parametrize(
    ("closed", "hours", "now", "expected"),
    [
        pytest.param(at(1, 10), "04", at(2, 0), at(5, 4), id="young: the hour after it expires"),
        pytest.param(at(1, 4, 30), "04", at(2, 0), at(4, 4, 30), id="expires within the hour"),
        pytest.param(at(1, 10), "04", at(5, 4, 20), at(5, 4), id="expired before this hour"),
        pytest.param(at(1, 10), "04", at(5, 5), at(6, 4), id="the hour was missed: the next day's"),
        pytest.param(at(1, 10), "04;16", at(5, 5), at(5, 16), id="the nearer of two hours"),
        pytest.param(at(1, 10), "23", at(4, 9, 59), at(4, 23), id="not a moment before it expires"),
    ],
)
def test_a_segment_goes_in_an_allowed_hour_once_it_is_old_enough(closed: int, hours: str, now: int, expected: int):
    assert due(closed, hours, now) == expected


@pytest.mark.parametrize("text", ["", ";", "24", "4h", "-1", "04,16", "04;" * 25])
def test_hours_that_make_no_sense_are_refused(text: str):
    with pytest.raises(ValueError, match="hours of the day"):
        parse_hours(text)


def test_hours_are_a_list():
    assert parse_hours(" 04; 16 ;") == {4, 16}
