"""The fixture `mq` for pytest, found by its entry point where the package is installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from consumer.testing.memory_broker import MemoryBroker


@pytest.fixture
def mq() -> Iterator[MemoryBroker]:
    """A broker in memory in place of the project's own: what code sends goes to its declared listeners, at once."""
    with MemoryBroker() as broker:
        yield broker
