"""Removals that tools ask for: what goes at any hour, and what stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.engine.config import BrokerConfig
from broker.engine.retention.remover import Remover
from broker.engine.retention.requested import RequestedRetention
from broker.engine.retention.rules import HOUR_MS
from broker.engine.store import retention as store_retention
from tests.support.old_stores import old_store, segment_names
from tests.support.stores import ManualClock
from tests.support.waiting import eventually


class Room:
    """A store whose last segment is written to."""

    def __init__(self, folder: Path, segment_count: int) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.store = old_store(folder, self.clock, segment_count)
        self.remover = Remover(self.store)
        config = BrokerConfig(store=folder, delete_when="")
        self.retention = RequestedRetention(self.store, self.remover, config, self.clock, retry_s=0.01)

    @property
    def segment_count(self) -> int:
        return len(segment_names(self.folder))

    def index_files(self) -> int:
        return sum(1 for path in (self.folder / "consumequeue").rglob("*") if path.is_file() and path.name.isdecimal())


@pytest.fixture
async def room(request: pytest.FixtureRequest, tmp_path: Path):
    room = Room(tmp_path, getattr(request, "param", 4))
    yield room
    await room.retention.stop()
    await room.remover.stop()
    room.store.close()


async def test_a_tool_has_old_segments_removed_at_any_hour(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    oldest = room.store.retention.oldest
    assert oldest is not None
    assert oldest.closed_ms is not None
    room.clock.now_ms = oldest.closed_ms + 10_000 * HOUR_MS
    # For as long as a slow disk keeps the checkpoint waiting.
    monkeypatch.setattr("broker.engine.retention.requested.TRIES_MAX", 10_000)
    room.retention.remove_expired()
    room.retention.remove_expired()
    await eventually(lambda: room.segment_count == 1)


async def test_segments_that_are_young_or_needed_stay(room: Room) -> None:
    oldest = room.store.retention.oldest
    assert oldest is not None
    assert oldest.closed_ms is not None
    room.clock.now_ms = oldest.closed_ms + 72 * HOUR_MS - 1
    room.retention.remove_expired()
    await room.retention.stop()
    room.store.add_pins(lambda: 0)
    room.clock.now_ms += 10_000 * HOUR_MS
    room.retention.remove_expired()
    await room.retention.stop()
    assert room.segment_count == 4


@pytest.mark.parametrize("room", [pytest.param(30, id="30-segments")], indirect=True)
async def test_a_tool_has_index_files_removed_that_retention_left(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    before = room.index_files()
    monkeypatch.setattr(store_retention, "INDEX_FILES_MAX", 0)
    while room.segment_count > 1:
        await room.remover.remove()
    assert room.index_files() == before
    monkeypatch.setattr(store_retention, "INDEX_FILES_MAX", 1)
    room.retention.remove_index_files()
    await eventually(lambda: room.index_files() < before - 1)
