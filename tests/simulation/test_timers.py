"""Random lives of timers beside a plain model of dicts: kills, power cuts, spoiled files, clocks that jump.

TORTURE=1 pytest tests/simulation/test_timers.py      more and longer lives
TIMER_SEED=4711 pytest tests/simulation/test_timers.py     that one again
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from broker.engine.schedule import timer as timer_module
from broker.engine.schedule import timer_index, timer_runs
from broker.engine.schedule.entering import enter_timer
from broker.engine.schedule.timer import TimerDelivery
from broker.engine.store.message_store import MessageStore
from remoting.wire.properties import Property, decode_properties
from tests.support.faulty_files import PowerCutFiles
from tests.support.stores import SMALL, START_MS, ManualClock, abandon, draft, open_store, read_queue, wait_for_flush

pytestmark = pytest.mark.simulation

TORTURE = bool(os.environ.get("TORTURE"))
SEEDS = [int(os.environ["TIMER_SEED"])] if "TIMER_SEED" in os.environ else range(300 if TORTURE else 8)
STEPS = 900 if TORTURE else 250
MAX_DELAY_S = 3 * 86_400
QUEUES = 3
CONFIG = replace(SMALL, flush="sync", segment_bytes=65_536, checkpoint_bytes=20_000, flush_interval_ms=1)


@dataclass
class Wish:
    """What a sender was told is waiting."""

    due_ms: int
    slot_end_ms: int
    is_recalled: bool = False


class Life:
    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.root = folder
        self.life = 0
        self.clock = ManualClock()
        self.wishes: dict[bytes, Wish] = {}
        self.number = 0
        self.clock_high_ms = START_MS
        self.kept_progress: bytes | None = None
        self.files = PowerCutFiles(folder / "store0", folder / "disk0")
        self.start(folder / "store0")

    # --- a life of the broker

    def start(self, folder: Path) -> None:
        self.folder = folder
        self.store: MessageStore = open_store(folder, CONFIG, self.clock, self.files)
        self.timers = TimerDelivery(self.store, folder, lambda: None, self.clock)
        self.timers.recover()
        self.store.add_append_listeners(self.timers.appended)

    def end(self) -> None:
        if self.timers._saving is not None:
            self.timers._saving.cancel()
        abandon(self.store)
        self.life += 1

    def kill(self) -> None:
        self.end()
        self.spoil()
        self.start(self.folder)

    async def stop(self) -> None:
        await self.timers.stop()
        self.store.close()
        self.life += 1
        self.start(self.folder)

    def cut_power(self) -> None:
        """What was acknowledged was flushed. What was copied to its topic and not flushed may come again."""
        if self.chance.random() < 0.5:
            wait_for_flush(self.store)
        flushed = self.store.flushed_commit_log_offset
        after = self.root / f"store{self.life + 1}"
        self.files.cut(after, self.chance)
        self.end()
        self.spoil_progress(after)
        shutil.copytree(after, self.root / f"disk{self.life}")
        self.files = PowerCutFiles(after, self.root / f"disk{self.life}")
        self.start(after)
        # What the start removed, or removed and wrote again, is gone for good.
        for path in (self.root / f"disk{self.life}" / "timer").glob("*.run"):
            now = after / "timer" / path.name
            if not now.exists() or now.read_bytes() != path.read_bytes():
                path.unlink()
        assert self.store.max_commit_log_offset >= flushed
        # Of what was not flushed a copy may be there whose timer is lost: they lie in different pages of the log.
        there = {message.body for message in self.waiting_records()} | self.delivered().keys()
        for body in [body for body in self.wishes if body not in there]:
            del self.wishes[body]
        markers = {
            message.properties[Property.TIMER_DEL_UNIQKEY].removeprefix("orders+")
            for message in self.waiting_records()
            if Property.TIMER_DEL_UNIQKEY in message.properties
        }
        for body, wish in self.wishes.items():
            wish.is_recalled = wish.is_recalled and body.decode() in markers

    def spoil(self) -> None:
        """What only indexes the log may be gone, torn or wrong after a kill."""
        for path in sorted((self.folder / "timer").glob("*")):
            if self.chance.random() < 0.15:
                self.spoil_file(path)

    def spoil_file(self, path: Path) -> None:
        data = bytearray(path.read_bytes())
        match self.chance.randrange(3):
            case 0:
                path.unlink()
            case 1 if data:
                data[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(8)
                path.write_bytes(data)
            case _:
                path.write_bytes(data[: self.chance.randrange(len(data) + 1)])

    def spoil_progress(self, folder: Path) -> None:
        """An older file may come back."""
        if self.kept_progress is not None and self.chance.random() < 0.5:
            (folder / "timer").mkdir(exist_ok=True)
            (folder / "timer" / "progress").write_bytes(self.kept_progress)

    def waiting_records(self):
        return read_queue(self.store, "rmq_sys_wheel_timer", 0)

    # --- operations

    def send(self) -> None:
        self.number += 1
        body = b"m%d" % self.number
        wait_ms = self.chance.choice([1, 700, 5_000, 90_000, 86_400_000, MAX_DELAY_S * 1000])
        wait_ms = self.chance.randrange(1, wait_ms + 1)
        name, value = self.chance.choice(
            [
                ("TIMER_DELIVER_MS", self.clock() + wait_ms),
                ("TIMER_DELAY_MS", wait_ms),
                ("TIMER_DELAY_SEC", max(1, wait_ms // 1000)),
            ]
        )
        due_ms = (
            int(value) if name == "TIMER_DELIVER_MS" else self.clock() + int(value) * (1000 if "SEC" in name else 1)
        )
        message = draft(body, queue_id=self.chance.randrange(QUEUES), unique_key=body.decode())
        properties = decode_properties(message.properties_text) | {name: str(value)}
        assert enter_timer(message, properties, self.clock(), MAX_DELAY_S)
        self.store.append(message)
        self.wishes[body] = Wish(due_ms, int(properties[Property.TIMER_OUT_MS]) + 1000)

    def send_plain(self) -> None:
        self.store.append(draft(b"x" * self.chance.randrange(1, 3000), topic="bills"))

    def recall(self) -> None:
        candidates = [body for body, wish in self.wishes.items() if wish.slot_end_ms - 999 > self.clock()]
        if not candidates:
            return
        body = self.chance.choice(candidates)
        wish = self.wishes[body]
        message = draft(b"0", unique_key=body.decode())
        properties = decode_properties(message.properties_text) | {
            Property.TIMER_DEL_UNIQKEY: self.chance.choice(["", "orders+"]) + body.decode(),
            Property.TIMER_DELIVER_MS: str(wish.slot_end_ms - 999),
        }
        assert enter_timer(message, properties, self.clock(), MAX_DELAY_S)
        self.store.append(message)
        if body not in self.delivered():
            wish.is_recalled = True

    def pass_time(self) -> None:
        self.clock.now_ms += self.chance.choice([1, 3, 400, 1_000, 7_000, 60_000, 3_600_000])

    def jump(self) -> None:
        self.clock.now_ms += self.chance.choice([-3_600_000, -1_500, -1, 100_000_000])
        self.clock.now_ms = max(self.clock.now_ms, START_MS)

    def deliver(self) -> None:
        for _ in range(self.chance.randrange(1, 4)):
            for entry in self.timers.agenda():
                self.timers.carry_out(entry.key, self.clock())
        self.clock_high_ms = max(self.clock_high_ms, self.clock())

    def save(self) -> None:
        if self.chance.random() < 0.5:
            wait_for_flush(self.store)
        self.timers._save()
        progress = self.folder / "timer" / "progress"
        if progress.exists() and self.chance.random() < 0.3:
            self.kept_progress = progress.read_bytes()

    # --- checks

    def delivered(self) -> Counter[bytes]:
        return Counter(
            message.body for queue_id in range(QUEUES) for message in read_queue(self.store, "orders", queue_id)
        )

    def check(self) -> None:
        for queue_id in range(QUEUES):
            for message in read_queue(self.store, "orders", queue_id):
                assert message.store_timestamp_ms >= self.wishes[message.body].due_ms, "early"
        delivered = self.delivered()
        assert max(delivered.values(), default=1) == 1, "twice"
        assert not any(self.wishes[body].is_recalled for body in delivered), "recalled"
        assert self.timers.waiting_count >= 0

    def finish(self) -> None:
        self.clock.now_ms = max(self.clock_high_ms, self.clock()) + 2 * MAX_DELAY_S * 1000
        for _ in range(10_000):
            entries = self.timers.agenda()
            if not entries:
                break
            assert entries[0].next_due_ms <= self.clock(), "due after everything"
            self.timers.carry_out(entries[0].key, self.clock())
        self.timers._save()
        assert set(self.delivered()) == {body for body, wish in self.wishes.items() if not wish.is_recalled}
        assert self.timers.waiting_count == 0
        assert self.timers.pinned() is None
        assert self.store.verify().problems == ()


@pytest.mark.parametrize("seed", SEEDS)
async def test_timers_come_once_and_never_early_whatever_happens(tmp_path: Path, seed: int, monkeypatch) -> None:
    monkeypatch.setattr(timer_runs, "PENDING_MAX", 8)
    monkeypatch.setattr(timer_index, "PENDING_MAX", 8)
    monkeypatch.setattr(timer_runs, "RUN_RANGE_MAX", 40)
    monkeypatch.setattr(timer_runs, "BLOCK_ENTRIES", 3)
    monkeypatch.setattr(timer_runs, "BLOCK_BYTES", 3 * 16 + 4)
    monkeypatch.setattr(timer_module, "STEP_MESSAGES_MAX", 4)
    life = Life(tmp_path, seed)
    operations = (
        [life.send] * 8
        + [life.recall] * 2
        + [life.send_plain, life.pass_time, life.pass_time]
        + [life.deliver] * 5
        + [life.save] * 2
    )
    for _ in range(STEPS):
        life.chance.choice(operations)()
        match life.chance.randrange(120):
            case 0:
                life.kill()
            case 1:
                life.cut_power()
            case 2:
                await life.stop()
            case 3:
                life.jump()
            case 4:
                life.spoil()
            case 5:
                life.check()
    life.check()
    life.finish()
    life.check()
    await life.stop()
    life.check()
    life.end()
