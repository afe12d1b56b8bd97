"""Sparklines: steps to values, values to paths; what was not observed stays a gap."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mqadmin.console.sparkline import Box, draw, resampled

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
BOX = Box(104, 24)


def minutes(count: float) -> datetime:
    return START + timedelta(minutes=count)


def test_a_step_holds_until_the_next():
    steps = [(minutes(0), 5), (minutes(2), 8)]
    assert resampled(steps, START, minutes(4), count=4) == [5, 8, 8, 8]


def test_a_spike_within_a_stretch_is_not_lost():
    steps = [(minutes(0), 5), (minutes(1.2), 900), (minutes(1.4), 5)]
    assert resampled(steps, START, minutes(3), count=3) == [5, 900, 5]


def test_what_was_not_known_stays_unknown():
    steps = [(minutes(1), None), (minutes(2.5), 7)]
    assert resampled(steps, START, minutes(4), count=4) == [None, None, 7, 7]


def test_a_line_runs_from_the_bottom_left_to_the_top_right():
    drawn = draw([0, 100], BOX)
    assert drawn is not None
    assert drawn.line == "M2.0 22.0L102.0 2.0"
    assert drawn.end == (102.0, 2.0)


def test_a_gap_breaks_the_line():
    drawn = draw([1, 2, None, 3, 4], BOX)
    assert drawn is not None
    assert drawn.line.count("M") == 2


def test_a_level_line_is_two_points():
    drawn = draw([7] * 60, BOX)
    assert drawn is not None
    assert drawn.line.count("L") == 1


def test_the_scale_starts_at_nothing():
    drawn = draw([1000, 1010], BOX)
    assert drawn is not None
    assert drawn.line.startswith("M2.0 2.2")


def test_too_little_is_not_drawn():
    assert draw([None, 4, None], BOX) is None
    assert draw([], BOX) is None
