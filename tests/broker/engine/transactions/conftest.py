"""A broker with transactions."""

from __future__ import annotations

import pytest

from tests.support.transaction_broker import Broker


@pytest.fixture
async def broker(tmp_path):
    broker = Broker(tmp_path / "store")
    yield broker
    broker.close()
