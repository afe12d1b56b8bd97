"""A power cut at a random moment: of pages written but not flushed, any may be old and any new.

Must survive with sync flush: every acknowledged message. May vanish with async flush: what was not flushed yet, even
from the middle; then the rest keeps its queue offsets. Must never appear: a message that was not appended.
"""

from __future__ import annotations

import asyncio
import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from broker.engine.store.message_store import MessageStore
from broker.engine.store.retention import Removal
from tests.support.faulty_files import OnePlaceFiles, PowerCutFiles
from tests.support.stores import SMALL, abandon, draft, open_store, read_queue
from tests.support.waiting import eventually

pytestmark = pytest.mark.crash

SEEDS = 150 if os.environ.get("TORTURE") else 12
QUEUES = 3


@pytest.mark.parametrize("flush", ["sync", "async"])
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_what_was_flushed_survives(tmp_path: Path, flush: str, seed: int) -> None:
    chance = random.Random(f"{flush} {seed}")
    files = PowerCutFiles(tmp_path / "store", tmp_path / "disk")
    config = replace(SMALL, flush=flush, checkpoint_bytes=chance.choice([3000, 20_000, 1 << 60]), flush_interval_ms=3)
    store = open_store(tmp_path / "store", config, files=files)  # type: ignore[arg-type]
    appended: dict[tuple[int, int], bytes] = {}
    safe: set[tuple[int, int]] = set()
    for number in range(chance.randrange(20, 400)):
        await append(store, number, chance, appended, safe)
        if chance.random() < 0.1:
            await asyncio.sleep(chance.choice([0, 0.001, 0.004]))
    surely = set(safe) if flush == "sync" else set()
    files.cut(tmp_path / "after", chance)
    abandon(store)
    check(tmp_path / "after", appended, surely)


async def append(
    store: MessageStore,
    number: int,
    chance: random.Random,
    appended: dict[tuple[int, int], bytes],
    safe: set[tuple[int, int]],
) -> None:
    body = b"%d " % number * chance.randrange(1, 300)
    one = store.append(draft(body, queue_id=number % QUEUES, keys=f"k{number}", tags="t"))
    place = one.queue_id, one.queue_offset
    appended[place] = body
    store.when_flushed(one.commit_log_offset + one.total_bytes, lambda error: None if error else safe.add(place))


def check(folder: Path, appended: dict[tuple[int, int], bytes], safe: set[tuple[int, int]]) -> None:
    for _ in range(2):
        store = open_store(folder, files=OnePlaceFiles())
        found = {
            (message.queue_id, message.queue_offset): message.body
            for queue_id in range(QUEUES)
            for message in read_queue(store, queue_id=queue_id)
        }
        assert found.items() <= appended.items()
        assert safe <= found.keys()
        assert store.verify().problems == ()
        for queue_id in range(QUEUES):
            following = store.max_offset("orders", queue_id)
            assert store.append(draft(b"new", queue_id=queue_id)).queue_offset == following
            appended[queue_id, following] = b"new"
            safe = safe | {(queue_id, following)}
        store.close()


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_what_was_flushed_survives_beside_retention(tmp_path: Path, seed: int) -> None:
    """Segments go all the while, and the power between any two steps of that: what was removed may come back as long
    as its folder was not flushed. What was never removed stays, and every queue goes on where it was."""
    chance = random.Random(f"retention {seed}")
    files = PowerCutFiles(tmp_path / "store", tmp_path / "disk")
    config = replace(SMALL, flush="sync", checkpoint_bytes=chance.choice([3000, 20_000]), flush_interval_ms=3)
    config = replace(config, queue_file_entries=8)
    store = open_store(tmp_path / "store", config, files=files)
    appended: dict[tuple[int, int], bytes] = {}
    safe: set[tuple[int, int]] = set()
    for number in range(chance.randrange(100, 400)):
        # Queue 0 has messages at first only: retention takes its last one.
        await append(store, number if number < 20 else number * 3 + chance.randrange(1, 3), chance, appended, safe)
        if chance.random() < 0.1:
            await asyncio.sleep(chance.choice([0, 0.001, 0.004]))
            removal = store.retention.begin()
            if removal is not None:
                removal.carry_out()
                store.retention.finish(removal)
    await eventually(lambda: {queue_id for queue_id, _ in safe} == set(range(QUEUES)), what="a safe message per queue")
    removal = store.retention.begin()
    if removal is not None:
        _die_within(removal, chance)
    kept_from = {queue_id: store.min_offset("orders", queue_id) for queue_id in range(QUEUES)}
    went_on = {queue_id: 1 + max(offset for q, offset in safe if q == queue_id) for queue_id in range(QUEUES)}
    surely = {(queue_id, offset) for queue_id, offset in safe if offset >= kept_from[queue_id]}
    files.cut(tmp_path / "after", chance)
    abandon(store)

    store = open_store(tmp_path / "after", files=OnePlaceFiles())
    for queue_id in range(QUEUES):
        assert store.max_offset("orders", queue_id) >= went_on[queue_id]
    store.close()
    check(tmp_path / "after", appended, surely)


def _die_within(removal: Removal, chance: random.Random) -> None:
    steps = [lambda: removal.files.replace_json(removal.state_path, removal.state)]
    steps += [lambda path=path: removal.files.remove(path) for path in (*removal.segments, *removal.index_files)]
    for step in steps[: chance.randrange(len(steps) + 1)]:
        step()
