"""A store with delayed delivery on it."""

from __future__ import annotations

import pytest

from tests.support.delay_schedule import Schedule


@pytest.fixture
async def schedule(tmp_path):
    schedule = Schedule(tmp_path / "store")
    yield schedule
    schedule.close()
