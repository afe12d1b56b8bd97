"""Scheduled retention as the scheduler drives it: what it names, when, and that it keeps to that."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from pathlib import Path

import pytest

from broker.engine.config import BrokerConfig
from broker.engine.retention import scheduled as scheduled_module
from broker.engine.retention.remover import Remover
from broker.engine.retention.rules import HOUR_MS
from broker.engine.retention.scheduled import FILES_PER_PASS, ScheduledRetention
from tests.support.old_stores import old_store, segment_names
from tests.support.stores import ManualClock
from tests.support.waiting import eventually

ALL_HOURS = ";".join(f"{hour:02d}" for hour in range(24))


class Room:
    def __init__(self, folder: Path, segment_count: int = 4, delete_when: str = ALL_HOURS) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.store = old_store(folder, self.clock, segment_count)
        self.remover = Remover(self.store)
        self.config = BrokerConfig(store=folder, delete_when=delete_when)
        self.wakings = 0
        self.retention = ScheduledRetention(self.store, self.remover, self.config, self.wake, self.clock)

    def wake(self) -> None:
        self.wakings += 1

    @property
    def segment_count(self) -> int:
        return len(segment_names(self.folder))

    async def step(self) -> int:
        """The first of the agenda; once the flush lets it."""
        (entry,) = self.retention.agenda()
        self.clock.now_ms = max(self.clock.now_ms, entry.next_due_ms)
        done = self.retention.carry_out(entry.key, self.clock.now_ms).count
        await self.remover.stop()
        return done


@pytest.fixture
async def room(tmp_path: Path):
    room = Room(tmp_path)
    yield room
    await room.remover.stop()
    room.store.close()


async def test_the_agenda_names_the_oldest_segment_and_when_it_is_to_go(room: Room):
    oldest = room.store.retention.oldest
    assert oldest is not None
    (entry,) = room.retention.agenda()

    assert (entry.kind, entry.key) == ("retention", f"{0:020d}")
    assert entry.next_due_ms == room.retention.next_due_ms == oldest.closed_ms + 72 * HOUR_MS


async def test_a_step_before_the_time_removes_nothing_whatever_the_driver_believes(room: Room):
    (entry,) = room.retention.agenda()

    assert room.retention.carry_out(entry.key, entry.next_due_ms + HOUR_MS).count == 0
    assert room.segment_count == 4


async def test_a_step_removes_the_named_segment_and_wakes_the_scheduler(room: Room):
    await eventually(room.step)

    await eventually(lambda: room.wakings)
    assert room.segment_count == 3
    assert room.store.min_commit_log_offset > 0


async def test_a_step_for_a_segment_that_is_gone_does_nothing(room: Room):
    await eventually(room.step)
    room.clock.now_ms += HOUR_MS

    assert room.retention.carry_out(f"{0:020d}", room.clock.now_ms).count == 0
    assert room.segment_count == 3


async def test_a_step_for_what_is_no_segment_is_refused(room: Room):
    with pytest.raises(KeyError):
        room.retention.carry_out("everything", room.clock.now_ms)


async def test_a_shorter_time_counts_at_once(room: Room):
    before = room.retention.next_due_ms
    room.config.file_reserved_hours = 1

    assert room.retention.next_due_ms == before - 71 * HOUR_MS


async def test_a_pinned_segment_is_not_on_the_agenda(room: Room):
    room.store.add_pins(lambda: 0)

    assert room.retention.agenda() == []


async def test_only_one_segment_left_is_not_on_the_agenda(tmp_path: Path):
    room = Room(tmp_path / "other", segment_count=1)

    assert room.retention.agenda() == []
    room.store.close()


async def test_a_pass_removes_so_many_and_then_pauses(tmp_path: Path):
    room = Room(tmp_path / "other", segment_count=FILES_PER_PASS + 3)
    room.clock.now_ms += 100 * HOUR_MS
    dues = []
    while len(dues) < FILES_PER_PASS + 1:
        (entry,) = room.retention.agenda()
        if await room.step():
            dues.append(entry.next_due_ms)
        else:
            await asyncio.sleep(0.001)

    gaps = [late - early for early, late in pairwise(dues[1:])]
    assert set(gaps[:-1]) == {scheduled_module.PAUSE_BETWEEN_FILES_MS}
    assert gaps[-1] == scheduled_module.PAUSE_BETWEEN_PASSES_MS
    room.store.close()


async def test_outside_the_hour_nothing_is_due(tmp_path: Path):
    room = Room(tmp_path / "other")
    room.clock.now_ms += 100 * HOUR_MS
    room.config.delete_when = f"{(time.localtime(room.clock.now_ms / 1000).tm_hour + 5) % 24:02d}"

    due_ms = room.retention.next_due_ms
    assert due_ms is not None
    assert room.clock.now_ms < due_ms <= room.clock.now_ms + 5 * HOUR_MS
    room.store.close()
