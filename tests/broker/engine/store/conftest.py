"""A store, checked after each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.stores import ManualClock, open_store


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock):
    opened = open_store(tmp_path / "store", clock=clock)
    yield opened
    if not opened._is_closed:
        report = opened.verify()
        assert report.is_sound, (report.damages, report.problems)
    opened.close()
