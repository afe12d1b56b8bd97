"""How fast a lag shrinks by its samples, and whether the two halves of the window agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqadmin.clusters.figures import DrainConfidence, DrainKind, Pace, drain
from mqadmin.lag import history
from mqadmin.lag.draining import HALF_S, WINDOW_S, pace
from mqadmin.lag.history import LagSample

NOW_S = 1_000_000_200
STEADY, UNEVEN, FEW = DrainConfidence.STEADY, DrainConfidence.UNEVEN, DrainConfidence.FEW_SAMPLES


def packed(*lags: tuple[int, int | None]) -> bytes:
    """Returns the history of a lag that was this so many seconds ago."""
    found = b""
    for ago_s, lag in lags:
        found = history.appended(found, LagSample(NOW_S - ago_s, lag))
    return found


CASES = {
    "as in the docstring, steady": (((300, 900), (150, 600)), 300, Pace(2, STEADY)),
    "as in the docstring, uneven": (((300, 0), (150, 800)), 500, Pace(2, UNEVEN)),
    "twice as fast in one half": (((300, 900), (150, 600)), 450, Pace(1.5, STEADY)),
    "more than twice as fast in one half": (((300, 900), (150, 600)), 465, Pace(0.9, UNEVEN)),
    "it grows": (((300, 100), (150, 400)), 700, Pace(-2, STEADY)),
    "it stands": (((4000, 700),), 700, Pace(0, STEADY)),
    "it shrank, and grows now": (((300, 900), (150, 300)), 600, Pace(-2, UNEVEN)),
    "an offset was moved ahead": (((300, 90_000), (150, 600)), 450, Pace(1, UNEVEN)),
    "known for four minutes": (((240, 900), (120, 600)), 300, Pace(None, FEW)),
    "not known in between": (((300, 900), (200, None), (160, 600)), 300, Pace(None, FEW)),
    "not known long ago": (((900, None), (300, 900), (150, 600)), 300, Pace(2, STEADY)),
    "never sampled": ((), 300, Pace(None, FEW)),
    "not known now": (((300, 900), (150, 600)), None, Pace(None, FEW)),
}


@pytest.mark.parametrize(("lags", "lag", "expected"), CASES.values(), ids=CASES.keys())
def test_pace_and_its_confidence(lags: tuple[tuple[int, int | None], ...], lag: int | None, expected: Pace) -> None:
    assert pace(packed(*lags), NOW_S, lag) == expected


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_lag_that_shrinks_evenly_is_gone_when_that_is_said(left: int, per_half: int) -> None:
    found = pace(packed((WINDOW_S, left + 2 * per_half), (HALF_S, left + per_half)), NOW_S, left)
    when = drain(left, None, None, found)
    assert (when.kind, when.confidence) == (DrainKind.IN, STEADY)
    assert when.seconds == pytest.approx(left / per_half * HALF_S, rel=0.1)


def test_present_rates_are_used_where_samples_are_too_few() -> None:
    assert drain(100, 5, 15, Pace(None, FEW)).seconds == 10
    assert drain(100, 5, 15, Pace(None, FEW)).confidence == FEW
    assert drain(100, 5, 15, Pace(2, STEADY)).seconds == 50
    assert drain(100, 5, 15, Pace(0, STEADY)).kind == DrainKind.NEVER
    assert drain(0, 5, 15, Pace(2, STEADY)).confidence is None
    assert drain(100, None, 15, Pace(None, FEW)).kind == DrainKind.UNKNOWN
