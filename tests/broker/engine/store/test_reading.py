"""What the store promises to those who read: by offset, by time, by key."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.engine.store import key_lookup
from broker.engine.store.errors import RecordRefused
from broker.engine.store.key_index import KeyIndex
from broker.engine.store.message_store import MessageStore
from broker.engine.store.reader import Reader
from broker.engine.store.values import Appended, Boundary, ReadStatus, StoreConfig
from remoting.wire.stored_message import decode_message, decode_messages
from remoting.wire.tags import tags_code
from tests.support.stores import START_MS, ManualClock, bodies, draft, open_store


def fill(store: MessageStore, count: int, **fields: object) -> list[Appended]:
    return [store.append(draft(b"m%d" % number, **fields)) for number in range(count)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "status", "following"),
    [
        pytest.param(0, ReadStatus.FOUND, 3, id="first"),
        pytest.param(2, ReadStatus.FOUND, 3, id="last"),
        pytest.param(3, ReadStatus.OFFSET_OVERFLOW_ONE, 3, id="next"),
        pytest.param(4, ReadStatus.OFFSET_OVERFLOW_BADLY, 3, id="beyond"),
        pytest.param(-1, ReadStatus.OFFSET_TOO_SMALL, 0, id="before"),
    ],
)
def test_read_says_where_the_offset_lies(store: MessageStore, asked: int, status: ReadStatus, following: int) -> None:
    fill(store, 3)
    result = store.read("orders", 0, asked, 32, 262_144)
    assert (result.status, result.next_begin_offset, result.min_offset, result.max_offset) == (
        status,
        following,
        0,
        3,
    )
    assert bool(result.body) == (status is ReadStatus.FOUND)


def test_read_of_a_queue_that_never_was(store: MessageStore) -> None:
    result = store.read("orders", 0, 5, 32, 262_144)
    assert (result.status, result.next_begin_offset, result.max_offset) == (ReadStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0)


def test_read_of_a_queue_whose_only_append_was_refused(store: MessageStore) -> None:
    with pytest.raises(RecordRefused):
        store.append(draft(bytes(20_000)))
    assert store.read("orders", 0, 5, 32, 262_144).status is ReadStatus.NO_MESSAGE_IN_QUEUE


def test_read_stops_at_the_number_of_messages(store: MessageStore) -> None:
    fill(store, 10)
    result = store.read("orders", 0, 4, 3, 262_144)
    assert (result.message_count, result.next_begin_offset) == (3, 7)
    assert [message.body for message in decode_messages(result.body)] == [b"m4", b"m5", b"m6"]


def test_read_stops_before_too_many_bytes_but_always_takes_the_first(store: MessageStore) -> None:
    size = fill(store, 5)[0].total_bytes
    assert store.read("orders", 0, 0, 32, 1).message_count == 1
    assert store.read("orders", 0, 0, 32, 2 * size).message_count == 2
    assert store.read("orders", 0, 0, 32, 3 * size - 1).next_begin_offset == 2


def test_read_filters_by_tags_code_and_moves_past_what_it_looked_at(store: MessageStore) -> None:
    for number in range(30):
        store.append(draft(b"%d" % number, tags="ab"[number % 2]))
    wanted = {tags_code("b")}
    result = store.read("orders", 0, 0, 5, 262_144, wanted.__contains__)
    assert [message.body for message in decode_messages(result.body)] == [b"1", b"3", b"5", b"7", b"9"]
    assert result.next_begin_offset == 10
    nothing = store.read("orders", 0, 0, 32, 262_144, lambda code: False)
    assert (nothing.status, nothing.next_begin_offset) == (ReadStatus.NO_MATCHED_MESSAGE, 30)


def test_read_looks_at_no_more_than_800_entries(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s", StoreConfig(segment_bytes=1 << 20, flush="async"))
    store.append_batch([draft() for _ in range(1000)])
    result = store.read("orders", 0, 0, 32, 262_144, lambda code: False)
    assert (result.status, result.next_begin_offset) == (ReadStatus.NO_MATCHED_MESSAGE, 800)
    store.close()


def test_messages_of_interleaved_queues_are_read_apart(store: MessageStore) -> None:
    for number in range(200):
        store.append(draft(b"%d" % number, queue_id=number % 3))
    for queue_id in range(3):
        assert bodies(store, queue_id=queue_id) == [b"%d" % number for number in range(queue_id, 200, 3)]


def test_message_at_believes_no_offset_within_a_message(store: MessageStore) -> None:
    fill(store, 3)
    inside = store.append(draft(store.record_at(0) or b""))
    for offset in [-1, 1, inside.commit_log_offset + 88, store.max_commit_log_offset, 1 << 62]:
        assert store.message_at(offset) is None
    assert store.message_at(0) is not None


def test_queue_entry_and_store_timestamp(store: MessageStore, clock: ManualClock) -> None:
    first = store.append(draft(tags="a", born_host=("::1", 1)))
    clock.now_ms += 5
    store.append(draft())
    assert store.queue_entry("orders", 0, 0) == (0, first.total_bytes, tags_code("a"))
    assert [store.store_timestamp_at("orders", 0, number) for number in range(3)] == [START_MS, START_MS + 5, -1]
    assert store.queue_entry("orders", 0, 2) is None
    assert store.queue_entry("orders", 0, -1) is None
    assert store.queue_entry("nothing", 0, 0) is None


@pytest.mark.parametrize(
    ("after_ms", "lower", "upper"),
    [
        pytest.param(-1, 0, 0, id="before-the-first"),
        pytest.param(0, 0, 1, id="at-the-first-two"),
        pytest.param(5, 2, 1, id="between"),
        pytest.param(10, 2, 2, id="at-the-third"),
        pytest.param(30, 4, 4, id="at-the-last"),
        pytest.param(31, 5, 4, id="after-the-last"),
    ],
)
def test_offset_by_time(store: MessageStore, clock: ManualClock, after_ms: int, lower: int, upper: int) -> None:
    for moment in (0, 0, 10, 20, 30):
        clock.now_ms = START_MS + moment
        store.append(draft())
    assert store.offset_by_time("orders", 0, START_MS + after_ms, Boundary.LOWER) == lower
    assert store.offset_by_time("orders", 0, START_MS + after_ms, Boundary.UPPER) == upper


def test_offset_by_time_of_an_unknown_queue_is_zero(store: MessageStore) -> None:
    assert store.offset_by_time("orders", 0, START_MS) == 0


def test_a_clock_that_goes_back_is_held(store: MessageStore, clock: ManualClock, tmp_path: Path) -> None:
    store.append(draft())
    clock.now_ms -= 60_000
    assert store.append(draft()).store_timestamp_ms == START_MS
    store.close()
    again = open_store(tmp_path / "store", clock=clock)
    assert again.append(draft()).store_timestamp_ms == START_MS
    again.close()


def test_messages_are_found_by_their_keys(store: MessageStore, clock: ManualClock) -> None:
    for number in range(40):
        clock.now_ms = START_MS + number
        store.append(draft(b"%d" % number, keys=f"all k{number}", unique_key=f"U{number}"))
    store.append(draft(topic="other", keys="k7"))

    def found(key: str, most: int = 64, begin: int = 0, end: int = 100) -> list[bytes]:
        records = store.query_by_key("orders", key, most, START_MS + begin, START_MS + end)
        return [decode_message(record).body for record in records]

    assert found("k7") == found("U7") == [b"7"]
    assert found("all", most=3) == [b"39", b"38", b"37"]
    assert found("all", begin=10, end=12) == [b"12", b"11", b"10"]
    assert found("k") == found("k77") == found("orders") == []


def records_read(monkeypatch) -> list[int]:
    """The offsets of the records that are read from now on."""
    read: list[int] = []
    record_at = Reader.record_at

    def noted(reader: Reader, offset: int) -> bytes | None:
        read.append(offset)
        return record_at(reader, offset)

    monkeypatch.setattr(Reader, "record_at", noted)
    return read


def test_looking_for_a_key_reads_no_messages_of_a_deleted_topic(store: MessageStore, monkeypatch) -> None:
    fill(store, 40, keys="k")
    store.delete_topic("orders")
    store.append(draft(b"new", keys="k"))
    read = records_read(monkeypatch)
    assert len(store.query_by_key("orders", "k", 9, 0, 1 << 60)) == 1
    assert len(read) == 1


def test_looking_for_a_key_ends_after_so_many_bytes_of_others_with_its_hash(store: MessageStore, monkeypatch) -> None:
    monkeypatch.setattr(key_lookup, "STRANGE_BYTES_MAX", 2_000)
    offsets = [one.commit_log_offset for one in fill(store, 40, keys="other")]
    monkeypatch.setattr(KeyIndex, "find", lambda *_: reversed(offsets))
    read = records_read(monkeypatch)
    assert store.query_by_key("orders", "k", 9, 0, 1 << 60) == []
    assert 1 < len(read) < 40
