"""Random lives of a store beside a plain model of dicts; the seed is printed on failure.

TORTURE=1 pytest tests/simulation/test_store.py      more and longer lives
STORE_SEED=4711 pytest tests/simulation/test_store.py     that one again
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from broker.engine.store.files import FileLayer
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Appended, Boundary, MessageDraft, ReadStatus, StoreConfig
from remoting.wire.stored_message import decode_message, decode_messages
from remoting.wire.tags import tags_code
from tests.support.stores import SMALL, START_MS, ManualClock, abandon, draft, open_store, remove_oldest

pytestmark = pytest.mark.simulation

TORTURE = bool(os.environ.get("TORTURE"))
SEEDS = [int(os.environ["STORE_SEED"])] if "STORE_SEED" in os.environ else range(120 if TORTURE else 8)
STEPS = 1500 if TORTURE else 400

RARE_CHECKPOINTS = replace(SMALL, flush_interval_ms=1)
MANY_CHECKPOINTS = replace(SMALL, checkpoint_bytes=2000, flush_interval_ms=1)
TOPICS = ("orders", "bills", "%RETRY%" + "g" * 140)
TAGS = (None, "a", "b", "c")
Place = tuple[str, int]


@dataclass
class Model:
    """What the store must answer: per queue (body, tags, keys, store timestamp, commit-log offset), the position is
    the queue offset. What lies below the log's beginning is gone, but counts."""

    queues: dict[Place, list[tuple[bytes, str | None, str, int, int]]] = field(default_factory=dict)
    last_ms: int = 0
    log_min_offset: int = 0

    def min_offset(self, place: Place) -> int:
        return sum(1 for one in self.queues.get(place, []) if one[4] < self.log_min_offset)


class DyingFiles(FileLayer):
    """Dies before step `dies_at` of a removal: writing a file down, removing one, flushing a folder."""

    dies_at = 1 << 30

    def step(self) -> None:
        self.dies_at -= 1
        if self.dies_at < 0:
            raise SystemExit

    def replace_json(self, path: Path, value: object) -> None:
        self.step()
        super().replace_json(path, value)

    def remove(self, path: Path) -> None:
        self.step()
        super().remove(path)


class Life:
    def __init__(self, folder: Path, seed: int, config: StoreConfig) -> None:
        self.chance = random.Random(seed)
        self.folder = folder
        self.clock = ManualClock()
        self.files = DyingFiles()
        self.model = Model()
        self.number = 0
        self.has_deleted = False
        self.config = config
        self.store = self.open()

    def open(self) -> MessageStore:
        store = open_store(self.folder, self.config, self.clock, self.files)
        assert store.recovery.damages == ()
        assert store.recovery.torn is None
        return store

    # --- operations

    def append(self) -> None:
        one = self.new_draft()
        self.remember([one], [self.store.append(one)])

    def append_batch(self) -> None:
        drafts = [self.new_draft() for _ in range(self.chance.randrange(1, 8))]
        self.remember(drafts, self.store.append_batch(drafts))

    def new_draft(self) -> MessageDraft:
        self.number += 1
        body = b"%d " % self.number * self.chance.choice([1, 1, 5, 60, 200])
        return draft(
            body,
            self.chance.choice(TOPICS),
            self.chance.randrange(3),
            tags=self.chance.choice(TAGS),
            keys=f"k{self.number % 17} n{self.number}",
            born_host=self.chance.choice([("10.0.0.1", 1), ("2001:db8::7", 2)]),
        )

    def remember(self, drafts: list[MessageDraft], appended: list[Appended]) -> None:
        self.model.last_ms = max(self.model.last_ms, self.clock.now_ms)
        for one, place in zip(drafts, appended, strict=True):
            queue = self.model.queues.setdefault((one.topic, one.queue_id), [])
            assert place.queue_offset == len(queue)
            assert place.store_timestamp_ms == self.model.last_ms
            message = decode_message(self.store.record_at(place.commit_log_offset) or b"")
            assert message.body == one.body
            queue.append((one.body, message.tags, " ".join(message.keys), self.model.last_ms, place.commit_log_offset))

    def read(self) -> None:
        topic, queue_id = place = self.chance.choice(TOPICS), self.chance.randrange(3)
        queue = self.model.queues.get(place, [])
        offset = self.chance.randrange(len(queue) + 3)
        most = self.chance.choice([1, 3, 32])
        wanted = self.chance.choice([None, tags_code("a")])
        matches = None if wanted is None else wanted.__eq__
        result = self.store.read(topic, queue_id, offset, most, 1 << 20, matches)
        first = self.model.min_offset(place)
        if offset < first:
            assert result.status is ReadStatus.OFFSET_TOO_SMALL
            assert result.next_begin_offset == result.min_offset == first
            return
        if offset >= len(queue):
            assert not result.message_count
            assert result.next_begin_offset == len(queue)
            return
        expected = [
            (position, body)
            for position, (body, tags, _, _, _) in enumerate(queue)
            if position >= offset and (wanted is None or tags_code(tags) == wanted)
        ][:most]
        found = [(message.queue_offset, message.body) for message in decode_messages(result.body)]
        assert found == expected[: len(found)]
        if len(found) < len(expected):
            # The call ended with a file of the consume queue: the next one goes on there.
            assert result.next_begin_offset % self.config.queue_file_entries == 0
        assert (result.status is ReadStatus.FOUND) == bool(found)

    def ask_time(self) -> None:
        topic, queue_id = place = self.chance.choice(TOPICS), self.chance.randrange(3)
        queue, first = self.model.queues.get(place, []), self.model.min_offset(place)
        times = [(position, one[3]) for position, one in enumerate(queue) if position >= first]
        asked = START_MS + self.chance.randrange(-100, self.clock.now_ms - START_MS + 100)
        lower = next((position for position, time_ms in times if time_ms >= asked), len(queue))
        upper = max((position for position, time_ms in times if time_ms <= asked), default=0 if times else len(queue))
        assert self.store.offset_by_time(topic, queue_id, asked, Boundary.LOWER) == lower
        assert self.store.offset_by_time(topic, queue_id, asked, Boundary.UPPER) == upper

    def ask_key(self) -> None:
        topic = self.chance.choice(TOPICS)
        key = f"k{self.chance.randrange(17)}"
        expected = [
            body
            for (name, _), queue in self.model.queues.items()
            for body, _, keys, _, commit_log_offset in queue
            if name == topic and key in keys.split() and commit_log_offset >= self.model.log_min_offset
        ]
        found = [decode_message(record).body for record in self.store.query_by_key(topic, key, 64, 0, 1 << 60)]
        assert len(found) == min(len(expected), 64)
        assert set(found) <= set(expected)

    def move_clock(self) -> None:
        self.clock.now_ms += self.chance.choice([1, 10, 500, -300])
        self.clock.now_ms = max(self.clock.now_ms, START_MS)

    def delete_topic(self) -> None:
        topic = self.chance.choice(TOPICS)
        self.store.delete_topic(topic)
        self.has_deleted = True
        self.model.queues = {place: queue for place, queue in self.model.queues.items() if place[0] != topic}

    def retain(self) -> None:
        if remove_oldest(self.store):
            self.model.log_min_offset = self.store.min_commit_log_offset
            self.check()

    def retain_and_die(self) -> None:
        """A kill between any two steps of a removal: the segment is there with all its messages, or gone for good."""
        before = self.store.min_commit_log_offset
        self.files.dies_at = self.chance.randrange(6)
        with suppress(SystemExit):
            remove_oldest(self.store)
        self.files.dies_at = 1 << 30
        after = self.store.min_commit_log_offset
        abandon(self.store)
        self.store = self.open()
        self.model.log_min_offset = self.store.min_commit_log_offset
        assert self.model.log_min_offset in (before, after)
        assert self.store.recovery.rebuilt_indexes is None or self.has_deleted
        self.has_deleted = False
        self.check()

    def reopen(self) -> None:
        self.store.close()
        self.has_deleted = False
        self.store = self.open()
        assert self.store.recovery.was_clean
        assert self.store.recovery.rebuilt_indexes is None
        self.check()

    def kill(self) -> None:
        abandon(self.store)
        self.store = self.open()
        assert not self.store.recovery.was_clean
        # A kill while a topic's deletion is on its way to the checkpoint costs a rebuild, never more.
        assert self.store.recovery.rebuilt_indexes is None or self.has_deleted
        self.has_deleted = False
        self.check()

    def lose_indexes(self) -> None:
        self.store.close()
        (self.folder / "checkpoint").unlink()
        self.store = self.open()
        self.check()

    def check(self) -> None:
        for (topic, queue_id), queue in self.model.queues.items():
            assert self.store.max_offset(topic, queue_id) == len(queue)
            assert self.store.min_offset(topic, queue_id) == self.model.min_offset((topic, queue_id))
        assert sum(map(len, self.model.queues.values())) == sum(
            self.store.max_offset(topic, queue_id) for topic in self.store.topics() for queue_id in range(3)
        )
        report = self.store.verify()
        assert report.is_sound, (report.damages, report.problems)

    # --- the life

    def live(self) -> None:
        operations: list[tuple[int, Callable[[], None]]] = [
            (40, self.append),
            (12, self.append_batch),
            (25, self.read),
            (6, self.ask_time),
            (4, self.ask_key),
            (8, self.move_clock),
            (1, self.reopen),
            (2, self.kill),
            (1, self.lose_indexes),
            (1, self.delete_topic),
            (2, self.retain),
            (1, self.retain_and_die),
        ]
        weights, calls = zip(*operations, strict=True)
        for _ in range(STEPS):
            self.chance.choices(calls, weights)[0]()
        self.kill()
        self.reopen()
        self.store.close()


@pytest.mark.parametrize("config", [RARE_CHECKPOINTS, MANY_CHECKPOINTS], ids=["rare-checkpoints", "many-checkpoints"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_life_agrees_with_the_model(tmp_path: Path, seed: int, config: StoreConfig) -> None:
    print(f"STORE_SEED={seed}")
    Life(tmp_path / "store", seed, config).live()
