"""From one look to the next: pending, firing, resolved, and what a gap does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mqadmin.alerts.stepping import State, Timing, Track, step

T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def history(seen: str, timing: Timing, *, gap_at: int = -1) -> str:
    """A letter a look, 10 s apart: "+" holds, "-" does not, "?" is not known; returns the states' letters."""
    track: Track | None = None
    found = ""
    for index, letter in enumerate(seen):
        if track is not None and track.state == State.RESOLVED:
            track = None
        holds = {"+": True, "-": False, "?": None}[letter]
        track = step(track, holds, timing, at(10 * index), is_gap=index == gap_at)
        found += "." if track is None else track.state[0]
    return found


@pytest.mark.parametrize(
    ("seen", "timing", "states"),
    [
        ("+", Timing(), "f"),
        ("-+-", Timing(), ".fr"),
        ("++++", Timing(for_s=20), "ppff"),
        ("+-++", Timing(for_s=20), "p.pp"),
        ("+?++", Timing(for_s=20), "p.pp"),
        ("+?+", Timing(), "fff"),
        ("+???-", Timing(), "ffffr"),
        ("+--+--", Timing(resolve_s=20), "ffffff"),
        ("+---+", Timing(resolve_s=20), "fffrf"),
        ("+-?--", Timing(resolve_s=20), "fffrr"[:3] + "r."),
        ("?", Timing(), "."),
    ],
)
def test_states_follow_what_is_seen(seen: str, timing: Timing, states: str) -> None:
    assert history(seen, timing) == states


def test_after_a_gap_what_is_pending_begins_anew_and_what_fires_goes_on() -> None:
    assert history("+++++", Timing(for_s=20), gap_at=1) == "pppff"
    assert history("+++", Timing(), gap_at=1) == "fff"


def test_it_fires_when_it_has_held_for_exactly_as_long_as_its_rule_says() -> None:
    pending = Track(State.PENDING, T0)
    assert step(pending, True, Timing(for_s=60), at(59)) == pending
    assert step(pending, True, Timing(for_s=60), at(60)) == Track(State.FIRING, T0, fired_at=at(60))
