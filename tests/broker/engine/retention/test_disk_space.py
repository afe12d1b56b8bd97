"""The watch of the disk: three levels, on figures that the test gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.engine.config import BrokerConfig
from broker.engine.retention import disk_space as disk_space_module
from broker.engine.retention.disk_space import DiskSpaceCheck, DiskUse, disk_use
from broker.engine.retention.remover import Remover
from broker.engine.retention.rules import HOUR_MS
from broker.engine.sending.accepting import refusal
from broker.engine.store.errors import StoreFull
from remoting.wire.codes import ResponseCode
from tests.support.old_stores import old_store, segment_names
from tests.support.stores import ManualClock, draft
from tests.support.waiting import eventually


class Disk:
    """Used as the test says, less `per_segment` for each that is gone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.base = 10.0
        self.per_segment = 0.0
        self.full_count = len(segment_names(folder))

    def __call__(self, path: Path) -> DiskUse:
        gone = self.full_count - len(segment_names(self.folder))
        return DiskUse(self.base - gone * self.per_segment, 1 << 30)


class Room:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.store = old_store(folder, self.clock, 4)
        self.disk = Disk(folder)
        self.check = DiskSpaceCheck(self.store, Remover(self.store), BrokerConfig(store=folder), self.clock, self.disk)

    @property
    def segment_count(self) -> int:
        return len(segment_names(self.folder))

    async def check_until(self, segment_count: int) -> None:
        async def is_reached() -> bool:
            await self.check.check()
            return self.segment_count == segment_count

        await eventually(is_reached)


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(disk_space_module, "PAUSE_BETWEEN_FILES_MS", 0)
    room = Room(tmp_path)
    yield room
    room.store.close()


async def test_below_three_quarters_not_even_old_segments_go(room: Room):
    room.clock.now_ms += 100 * HOUR_MS
    room.disk.base = 75.0
    for _ in range(3):
        await room.check.check()

    assert room.segment_count == 4


async def test_over_three_quarters_old_segments_go_at_any_hour_and_young_ones_stay(room: Room):
    room.disk.base = 80.0
    await room.check.check()
    assert room.segment_count == 4

    room.clock.now_ms += 100 * HOUR_MS
    await room.check_until(1)
    assert room.store.full_because is None


async def test_over_85_percent_the_oldest_go_whatever_their_age_until_it_is_below(room: Room):
    room.disk.base, room.disk.per_segment = 88.0, 2.0

    await room.check_until(2)
    for _ in range(3):
        await room.check.check()
    assert room.segment_count == 2
    assert room.store.min_offset("orders", 0) > 0


async def test_over_90_percent_messages_are_refused_with_the_remedy_until_it_is_below(room: Room, caplog):
    room.store.add_pins(lambda: 0)
    room.disk.base = 93.5
    await room.check.check()

    assert room.store.full_because is not None
    for word in ("93.5 % full", str(room.folder), "1024 MiB free", "over 90 %", "free space"):
        assert word in room.store.full_because
    assert room.segment_count == 4, "what is pinned is not taken"
    assert "nothing can be removed" in caplog.text
    assert refusal(StoreFull(room.store.full_because)).response_code == ResponseCode.SERVICE_NOT_AVAILABLE
    room.store.append(draft(b"what the broker itself delivers"))

    room.disk.base = 90.0
    await room.check.check()
    assert room.store.full_because is None
    assert "messages are accepted again" in caplog.text


async def test_the_last_segment_stays_however_full_the_disk_is(room: Room):
    room.disk.base = 99.0
    await room.check_until(1)
    await room.check.check()

    assert room.segment_count == 1


def test_the_disk_is_asked_as_df_does(tmp_path: Path):
    use = disk_use(tmp_path)

    assert 0 < use.used_percent < 100
    assert use.free_bytes > 0
