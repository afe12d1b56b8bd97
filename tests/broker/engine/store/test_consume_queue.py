"""The 20-byte entries, on the disk and after it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from broker.engine.store import consume_queue as consume_queue_module
from broker.engine.store.consume_queue import ConsumeQueue
from broker.engine.store.errors import IndexesStale
from broker.engine.store.files import read_written
from broker.engine.store.layout import HOLE_BYTES
from broker.engine.store.mapped_files import MappedFiles
from broker.engine.store.values import StoreConfig
from tests.support.faulty_files import FaultyFiles
from tests.support.stores import abandon, draft, open_store

FILE_ENTRIES = 10


@pytest.fixture
def mapped():
    files = MappedFiles(FaultyFiles(), limit=2)
    yield files
    files.close_all()


def make(folder: Path, mapped: MappedFiles) -> ConsumeQueue:
    return ConsumeQueue("t", 0, folder / "t" / "0", FILE_ENTRIES, mapped)


def filled(folder: Path, mapped: MappedFiles, count: int) -> ConsumeQueue:
    queue = make(folder, mapped)
    for number in range(count):
        queue.reserve(1)
        queue.put(number * 100, 100, number)
    return queue


def test_an_entry_is_written_as_rocketmq_writes_it(tmp_path: Path, mapped: MappedFiles) -> None:
    queue = make(tmp_path, mapped)
    queue.reserve(1)
    queue.put(0x0102030405060708, 0x11121314, -2)
    content = (tmp_path / "t" / "0" / ("0" * 20)).read_bytes()
    assert content[:20].hex() == "010203040506070811121314fffffffffffffffe"
    assert content[20:] == bytes(180)


def test_entries_come_back_from_as_many_files_as_they_need(tmp_path: Path, mapped: MappedFiles) -> None:
    queue = filled(tmp_path, mapped, 95)
    assert [queue.entry(number) for number in range(95)] == [(number * 100, 100, number) for number in range(95)]
    assert (queue.entry(95), queue.entry(-1)) == (None, None)
    assert len(queue.entries(7, 50)) == 3 * 20
    assert len(queue.entries(90, 50)) == 5 * 20


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 95])
def test_load_finds_the_end(tmp_path: Path, mapped: MappedFiles, count: int) -> None:
    filled(tmp_path, mapped, count)
    (tmp_path / "t" / "0").mkdir(parents=True, exist_ok=True)
    again = make(tmp_path, mapped)
    again.load(None)
    assert (again.max_offset, again.synced_offset) == (count, count)


@pytest.mark.parametrize("log_end", [0, 100, 950, 1000, 1050, 9400, 9500])
def test_load_zeroes_entries_of_records_behind_the_log(tmp_path: Path, mapped: MappedFiles, log_end: int) -> None:
    filled(tmp_path, mapped, 95)
    again = make(tmp_path, mapped)
    again.load(log_end)
    kept = -(-log_end // 100)
    assert again.max_offset == kept
    stored = b"".join(path.read_bytes() for path in sorted((tmp_path / "t" / "0").iterdir()))
    assert not stored[kept * 20 :].strip(b"\0")
    again.reserve(1)
    again.put(log_end, 7, 7)
    assert again.entry(kept) == (log_end, 7, 7)
    if kept:
        assert again.entry(kept - 1) == ((kept - 1) * 100, 100, kept - 1)


def test_load_refuses_a_gap_between_files(tmp_path: Path, mapped: MappedFiles) -> None:
    filled(tmp_path, mapped, 35)
    (tmp_path / "t" / "0" / "00000000000000000200").unlink()
    with pytest.raises(IndexesStale, match="files are missing"):
        make(tmp_path, mapped).load(None)


def test_a_queue_may_start_in_the_middle(tmp_path: Path, mapped: MappedFiles) -> None:
    queue = make(tmp_path, mapped)
    queue.put_holes(23, 5000)
    queue.reserve(1)
    queue.put(5000, 100, 1)
    assert [path.name for path in (tmp_path / "t" / "0").iterdir()] == ["00000000000000000400"]
    assert (queue.min_offset(0), queue.max_offset) == (23, 24)
    assert queue.entry(22) is None
    again = make(tmp_path, mapped)
    again.load(None)
    assert (again.min_offset(0), again.max_offset, again.entry(23)) == (23, 24, (5000, 100, 1))


def test_holes_keep_the_order_of_offsets(tmp_path: Path, mapped: MappedFiles) -> None:
    queue = filled(tmp_path, mapped, 3)
    queue.put_holes(12, 700)
    queue.reserve(1)
    queue.put(700, 100, 9)
    assert [queue.entry(number) for number in (2, 3, 11, 12)] == [(200, 100, 2), None, None, (700, 100, 9)]
    assert queue.entries(3, 1)[8:12] == HOLE_BYTES.to_bytes(4, "big")
    assert queue.min_offset(250) == 3
    assert queue.first_where(lambda entry: entry[0] >= 700) == 3


@pytest.mark.parametrize(("log_min", "expected"), [(0, 0), (1, 1), (100, 1), (5050, 51), (9400, 94), (9401, 95)])
def test_min_offset_follows_the_log(tmp_path: Path, mapped: MappedFiles, log_min: int, expected: int) -> None:
    assert filled(tmp_path, mapped, 95).min_offset(log_min) == expected


def test_changed_files_are_named_once(tmp_path: Path, mapped: MappedFiles) -> None:
    queue = filled(tmp_path, mapped, 15)
    folder = tmp_path / "t" / "0"
    assert [path.name for path in queue.changed_files() if path.parent == folder] == ["0" * 20, "0" * 17 + "200"]
    assert queue.changed_files() == []
    queue.reserve(1)
    queue.put(1500, 100, 15)
    assert queue.changed_files()[0].name == "0" * 17 + "200"


def test_space_is_taken_before_the_entry(tmp_path: Path) -> None:
    files = FaultyFiles()
    mapped = MappedFiles(files, limit=2)
    queue = make(tmp_path, mapped)
    files.is_full = True
    with pytest.raises(OSError, match="No space left") as refused:
        queue.reserve(1)
    assert refused.value.errno == errno.ENOSPC
    assert queue.max_offset == 0
    files.is_full = False
    queue.reserve(1)
    queue.put(0, 1, 0)
    mapped.close_all()


def test_no_more_files_stay_mapped_than_allowed(tmp_path: Path, mapped: MappedFiles) -> None:
    queues = [ConsumeQueue("t", number, tmp_path / "t" / str(number), FILE_ENTRIES, mapped) for number in range(9)]
    for number in range(40):
        for queue in queues:
            queue.reserve(1)
            queue.put(number, 1, queue.queue_id)
    assert len(mapped._open) == 2
    assert all(queue.entry(33) == (33, 1, queue.queue_id) for queue in queues)


def test_opening_looks_only_where_something_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file has its full size at once; searched as a whole, 80,000 young queues took three minutes to open."""
    config = StoreConfig(segment_bytes=1 << 20, flush="async")
    store = open_store(tmp_path, config)
    for _ in range(300):
        store.append(draft())
    abandon(store)
    looked_at: list[int] = []

    def noting(path: Path, byte_count: int) -> tuple[bytes, bool]:
        content, has_more = read_written(path, byte_count)
        looked_at.append(len(content))
        return content, has_more

    monkeypatch.setattr(consume_queue_module, "read_written", noting)
    again = open_store(tmp_path, config)
    assert again.max_offset("orders", 0) == 300
    assert 0 < max(looked_at) < 20_000
    again.close()
    clean = open_store(tmp_path, config)
    assert clean.max_offset("orders", 0) == 300
    clean.close()
