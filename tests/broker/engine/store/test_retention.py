"""Taking the oldest segments away: what goes, what stays, what a later start finds."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from broker.engine.store.errors import StoreError
from broker.engine.store.files import FileLayer
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Boundary, ReadStatus
from remoting.complaints import ComplaintLog
from remoting.wire.stored_message import decode_message
from tests.support.logged import lines_of
from tests.support.stores import (
    SMALL,
    START_MS,
    ManualClock,
    abandon,
    bodies,
    draft,
    open_store,
    remove_oldest,
    wait_for_flush,
)
from tests.support.waiting import wait_until

QUICK = replace(SMALL, flush_interval_ms=1)
# A segment of 16 KiB takes 13 of them.
BODY = b"x" * 1100
PER_SEGMENT = 13


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock):
    """Four segments of messages with keys k0, k1 …, a second apart; then one in another topic."""
    store = open_store(tmp_path, QUICK, clock)
    fill(store, clock, 4 * PER_SEGMENT)
    yield store
    store.close()


def fill(store: MessageStore, clock: ManualClock, count: int, topic: str = "orders") -> None:
    for number in range(count):
        store.append(draft(BODY, topic, keys=f"k{number}"))
        clock.now_ms += 1000
    if store.config is QUICK:
        wait_for_flush(store)


def segments(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "commitlog").iterdir())


def reopened(store: MessageStore, config=QUICK) -> MessageStore:
    store.close()
    return open_store(store.path, config)


def test_the_oldest_segment_goes_with_its_messages_and_the_others_stay(store: MessageStore, tmp_path: Path):
    first = segments(tmp_path)[0]

    assert remove_oldest(store)

    assert first not in segments(tmp_path)
    assert store.min_commit_log_offset == SMALL.segment_bytes
    assert store.min_offset("orders", 0) == PER_SEGMENT
    assert len(bodies(store)) == 3 * PER_SEGMENT
    assert store.verify().is_sound


def test_what_asks_for_a_removed_message_hears_that_it_is_gone(store: MessageStore):
    remove_oldest(store)

    below = store.read("orders", 0, 3, 32, 1 << 20)
    assert (below.status, below.next_begin_offset) == (ReadStatus.OFFSET_TOO_SMALL, PER_SEGMENT)
    assert store.record_at(0) is None
    assert store.query_by_key("orders", "k3", 32, 0, 1 << 60) == []
    assert store.store_timestamp_at("orders", 0, 3) == -1
    assert store.offset_by_time("orders", 0, 0, Boundary.LOWER) == PER_SEGMENT
    (found,) = store.query_by_key("orders", f"k{PER_SEGMENT}", 32, 0, 1 << 60)
    assert decode_message(found).queue_offset == PER_SEGMENT


def test_the_last_segment_never_goes(store: MessageStore, tmp_path: Path):
    while remove_oldest(store):
        pass

    assert len(segments(tmp_path)) == 1
    assert store.append(draft()).queue_offset == 4 * PER_SEGMENT


def test_a_segment_is_as_old_as_the_first_message_behind_it(store: MessageStore):
    oldest = store.retention.oldest

    assert oldest is not None
    assert oldest.closed_ms == START_MS + PER_SEGMENT * 1000
    assert oldest.name == f"{0:020d}"


def test_what_is_pinned_stays_until_it_is_let_go(store: MessageStore):
    needed: list[int | None] = [SMALL.segment_bytes + 10]
    store.add_pins(lambda: needed[0])
    assert remove_oldest(store)

    assert not remove_oldest(store)
    assert store.retention.begin() is None
    needed[0] = None
    assert remove_oldest(store)


def test_what_is_pinned_anew_counts_at_once(store: MessageStore):
    wait_until(lambda: store.retention._free_now() > 0)
    store.add_pins(lambda: 0)

    assert store.retention.begin() is None


def test_what_was_let_go_stays_until_what_replaces_it_is_on_the_disk(tmp_path: Path, clock: ManualClock):
    store = open_store(tmp_path, replace(SMALL, flush_interval_ms=60_000), clock)
    fill(store, clock, 2 * PER_SEGMENT)
    wait_until(lambda: store.retention._is_checkpointed(SMALL.segment_bytes))
    needed: list[int | None] = [0]
    store.add_pins(lambda: needed[0])
    assert store.retention.begin() is None
    store.append(draft(b"what replaces it"))
    needed[0] = None

    assert store.retention.begin() is None
    wait_until(lambda: store.flushed_commit_log_offset < store.max_commit_log_offset)
    store._flusher.flushed = store._log.sync()
    assert store.retention.begin() is not None
    store.close()


def test_queue_files_that_only_point_below_the_log_go_and_the_last_stays(tmp_path: Path, clock: ManualClock):
    store = open_store(tmp_path, replace(QUICK, queue_file_entries=5), clock)
    fill(store, clock, 3 * PER_SEGMENT)
    remove_oldest(store)
    remove_oldest(store)

    names = sorted(path.name for path in (tmp_path / "consumequeue" / "orders" / "0").iterdir())
    assert [int(name) // 100 for name in names] == [5, 6, 7]
    assert store.min_offset("orders", 0) == 2 * PER_SEGMENT
    store = reopened(store)
    assert store.recovery.rebuilt_indexes is None
    assert store.min_offset("orders", 0) == 2 * PER_SEGMENT
    assert len(bodies(store)) == PER_SEGMENT
    store.close()


@pytest.mark.parametrize("end", ["closed", "killed", "without a checkpoint"])
def test_a_queue_without_a_message_left_goes_on_where_it_was(tmp_path: Path, clock: ManualClock, end: str):
    store = open_store(tmp_path, QUICK, clock)
    for _ in range(7):
        store.append(draft(topic="quiet"))
    fill(store, clock, 2 * PER_SEGMENT)
    assert remove_oldest(store)
    if end == "killed":
        abandon(store)
    else:
        store.close()
    if end == "without a checkpoint":
        (tmp_path / "checkpoint").unlink()

    for _ in range(2):
        store = open_store(tmp_path, QUICK, clock)
        assert (store.min_offset("quiet", 0), store.max_offset("quiet", 0)) == (7, 7)
        assert store.read("quiet", 0, 3, 1, 1).status is ReadStatus.OFFSET_TOO_SMALL
        assert store.topics() >= {"quiet"}
        store.close()
    store = open_store(tmp_path, QUICK, clock)
    assert store.append(draft(b"again", topic="quiet")).queue_offset == 7
    assert bodies(store, "quiet") == [b"again"]
    abandon(store)
    store = open_store(tmp_path, QUICK, clock)
    assert bodies(store, "quiet") == [b"again"]
    assert store.verify().is_sound
    store.close()


def test_a_topic_made_again_starts_at_0_although_its_old_end_was_remembered(tmp_path: Path, clock: ManualClock):
    store = open_store(tmp_path, QUICK, clock)
    store.append(draft(topic="quiet"))
    fill(store, clock, 2 * PER_SEGMENT)
    remove_oldest(store)
    store.delete_topic("quiet")
    store.close()
    (tmp_path / "checkpoint").unlink()

    store = open_store(tmp_path, QUICK, clock)
    assert store.append(draft(topic="quiet")).queue_offset == 0
    store.close()


def test_a_deleted_topic_is_forgotten_when_the_log_has_none_of_its_messages(store: MessageStore, tmp_path: Path):
    store.delete_topic("orders")
    fill(store, ManualClock(), 2 * PER_SEGMENT, "bills")
    assert json.loads((tmp_path / "deleted_topics.json").read_text()).keys() == {"orders"}
    while remove_oldest(store):
        pass

    assert json.loads((tmp_path / "deleted_topics.json").read_text()) == {}


class Stuck(FileLayer):
    """Removes nothing while it is stuck."""

    is_stuck = True

    def remove(self, path: Path) -> None:
        if self.is_stuck:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().remove(path)


def fail_to_remove(store: MessageStore) -> None:
    removal = wait_until(store.retention.begin)
    with pytest.raises(OSError, match="Input/output") as caught:
        removal.carry_out()
    store.retention.finish(removal, caught.value)


def test_files_that_cannot_be_removed_go_with_the_next_ones(tmp_path: Path, clock: ManualClock):
    files = Stuck()
    store = open_store(tmp_path, QUICK, clock, files)
    fill(store, clock, 4 * PER_SEGMENT)
    fail_to_remove(store)
    assert store.min_offset("orders", 0) == PER_SEGMENT
    files.is_stuck = False

    remove_oldest(store)
    assert segments(tmp_path)[0] == f"{2 * SMALL.segment_bytes:020d}"
    store.close()


def test_files_that_cannot_be_removed_are_logged_once_a_minute(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
):
    now_s = [0.0]
    complaints = ComplaintLog(clock=lambda: now_s[0])
    store = MessageStore.open(tmp_path, QUICK, clock, Stuck(), complaints)
    fill(store, clock, 4 * PER_SEGMENT)
    for _ in range(3):
        fail_to_remove(store)
    (line,) = lines_of(caplog, "remoting")
    assert "cannot be deleted; the next removal tries again" in line
    now_s[0] = 60.0
    complaints.report_left_out()
    assert lines_of(caplog, "remoting")[1:] == ["retention, not deleted: 2 more in 60 s were not logged"]
    store.close()


def test_a_segment_that_comes_back_from_the_dead_is_removed_at_the_start(store: MessageStore, tmp_path: Path):
    first = tmp_path / "commitlog" / segments(tmp_path)[0]
    content = first.read_bytes()
    remove_oldest(store)
    abandon(store)
    first.write_bytes(content)

    store = open_store(tmp_path, QUICK)
    assert not first.exists()
    assert store.min_offset("orders", 0) == PER_SEGMENT
    assert store.verify().is_sound
    store.close()


def test_a_damaged_note_of_retention_is_taken_from_its_backup(store: MessageStore, tmp_path: Path):
    remove_oldest(store)
    store.close()
    (tmp_path / "retention.json").write_text("{")

    open_store(tmp_path, QUICK).close()
    (tmp_path / "retention.json.bak").write_text("[]")
    with pytest.raises(StoreError, match=r"retention\.json is damaged"):
        open_store(tmp_path, QUICK)
