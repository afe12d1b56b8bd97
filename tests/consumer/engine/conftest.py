"""A broker in memory with the topic `orders`, and members of the group `billing` on it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.memory_broker import MemoryBroker
from tests.support.memory_members import Members


@pytest.fixture
async def broker() -> AsyncIterator[MemoryBroker]:
    async with MemoryBroker() as memory:
        memory.create_topic("orders", 8)
        yield memory


@pytest.fixture
async def members(broker: MemoryBroker) -> AsyncIterator[Members]:
    started = Members(broker)
    yield started
    await started.stop_all()
