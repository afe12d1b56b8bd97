"""Moments as brokers tell them, liars included."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mqadmin.clusters.moments import MOMENT_MS_MAX, moment_or_none


@pytest.mark.parametrize("ms", [0, -1, -(2**63), MOMENT_MS_MAX + 1, 2**63 - 1])
def test_what_is_no_time_is_none(ms: int) -> None:
    assert moment_or_none(ms) is None


def test_the_last_moment_is_one() -> None:
    assert moment_or_none(1_000) == datetime.fromtimestamp(1, UTC)
    last = moment_or_none(MOMENT_MS_MAX)
    assert last is not None
    assert last.year == 9999
