"""What the store promises to those who append, and when it is opened again."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from broker.engine.store.consume_queue import ConsumeQueue
from broker.engine.store.errors import RecordRefused, StoreClosed, StoreFailed, StoreFull
from broker.engine.store.key_index import message_keys
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Appended, ReadStatus, StoreConfig
from remoting.wire.names import SCHEDULE_TOPIC
from remoting.wire.tags import tags_code
from tests.support.stores import SMALL, START_MS, abandon, bodies, draft, open_store, read_queue


def fill(store: MessageStore, count: int, **fields: object) -> list[Appended]:
    return [store.append(draft(b"m%d" % number, **fields)) for number in range(count)]  # type: ignore[arg-type]


def test_an_appended_message_comes_back_as_it_was(store: MessageStore) -> None:
    one = draft(b"body", tags="paid", keys="k1 k2", unique_key="AB", flag=-7, reconsume_times=3, sys_flag=0x301)
    appended = store.append(one)
    (message,) = read_queue(store)
    assert (message.body, message.tags, message.keys, message.flag) == (b"body", "paid", ["k1", "k2"], -7)
    assert (message.reconsume_times, message.sys_flag, message.store_timestamp_ms) == (3, 0x301, START_MS)
    assert (message.queue_offset, message.commit_log_offset, message.total_bytes) == (
        appended.queue_offset,
        appended.commit_log_offset,
        appended.total_bytes,
    )
    assert store.message_at(appended.commit_log_offset) == message
    assert appended.tags_code == tags_code("paid")


def test_each_queue_counts_its_own_offsets(store: MessageStore) -> None:
    offsets = [store.append(draft(queue_id=queue_id)).queue_offset for queue_id in (0, 1, 0, 2, 1, 0)]
    assert offsets == [0, 0, 1, 0, 1, 2]
    assert store.queues("orders") == [0, 1, 2]
    assert [store.max_offset("orders", queue_id) for queue_id in range(4)] == [3, 2, 1, 0]


def test_messages_cross_segments_and_queue_files(store: MessageStore, tmp_path: Path) -> None:
    fill(store, 500)
    assert bodies(store) == [b"m%d" % number for number in range(500)]
    segments = sorted(path.name for path in (tmp_path / "store" / "commitlog").iterdir())
    assert segments[:2] == ["00000000000000000000", "00000000000000016384"]
    queue_files = sorted((tmp_path / "store" / "consumequeue" / "orders" / "0").iterdir())
    assert [path.name for path in queue_files][:2] == ["00000000000000000000", "00000000000000000640"]
    assert {path.stat().st_size for path in queue_files} == {640}


def test_the_files_of_an_idle_queue_take_little_space(tmp_path: Path) -> None:
    with_defaults = open_store(tmp_path / "store", StoreConfig(segment_bytes=1 << 20))
    for queue_id in range(8):
        with_defaults.append(draft(queue_id=queue_id))
    with_defaults.close()
    files = [path for path in (tmp_path / "store" / "consumequeue").rglob("*") if path.is_file()]
    assert [path.stat().st_size for path in files] == [6_000_000] * 8
    assert sum(path.stat().st_blocks * 512 for path in files) < 8 * 16_384


def test_a_batch_lies_side_by_side_and_counts_on(store: MessageStore) -> None:
    fill(store, 2)
    appended = store.append_batch([draft(b"b%d" % number) for number in range(5)])
    assert [one.queue_offset for one in appended] == [2, 3, 4, 5, 6]
    ends = [one.commit_log_offset + one.total_bytes for one in appended]
    assert [one.commit_log_offset for one in appended[1:]] == ends[:-1]
    assert bodies(store)[2:] == [b"b0", b"b1", b"b2", b"b3", b"b4"]
    assert store.append_batch([]) == []


def test_a_batch_may_go_to_several_queues(store: MessageStore) -> None:
    appended = store.append_batch([draft(queue_id=number % 3) for number in range(7)])
    assert [one.queue_offset for one in appended] == [0, 0, 0, 1, 1, 1, 2]


def test_a_batch_is_not_split_between_segments(store: MessageStore) -> None:
    store.append(draft(bytes(10_000)))
    appended = store.append_batch([draft(bytes(3000)) for _ in range(4)])
    assert {one.commit_log_offset // SMALL.segment_bytes for one in appended} == {1}


def test_a_message_or_batch_larger_than_a_segment_is_refused_whole(store: MessageStore) -> None:
    with pytest.raises(RecordRefused, match="do not fit a segment"):
        store.append(draft(bytes(16_384)))
    with pytest.raises(RecordRefused, match="do not fit a segment"):
        store.append_batch([draft(bytes(6000)) for _ in range(3)])
    assert store.max_commit_log_offset == 0
    assert store.append(draft()).queue_offset == 0


def test_a_batch_with_one_bad_message_stores_none(store: MessageStore) -> None:
    with pytest.raises(RecordRefused):
        store.append_batch([draft(), draft(flag=1 << 40)])
    assert store.max_offset("orders", 0) == 0


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "../../etc", "nul\0", "t" * 256, "\ud800"])
def test_a_topic_that_cannot_name_a_folder_is_refused(store: MessageStore, topic: str) -> None:
    with pytest.raises(RecordRefused):
        store.append(draft(topic=topic))


@pytest.mark.parametrize("queue_id", [-1, 1 << 31])
def test_a_queue_id_that_no_field_holds_is_refused(store: MessageStore, queue_id: int) -> None:
    with pytest.raises(RecordRefused, match="no queue can be named"):
        store.append(draft(queue_id=queue_id))
    assert store.topics() == set()


def test_listeners_are_called_once_an_append_with_its_messages_in_order(store: MessageStore) -> None:
    calls: list[list[Appended]] = []
    store.add_append_listeners(calls.append)
    expected = [[store.append(draft(tags="a"))], store.append_batch([draft(), draft(tags="b")])]
    assert calls == expected
    assert [one.tags_code for call in calls for one in call] == [tags_code("a"), 0, tags_code("b")]


@pytest.mark.parametrize(
    "properties",
    [
        pytest.param({}, id="none"),
        pytest.param({"UNIQ_KEY": "U", "KEYS": "a b", "TAGS": "paid"}, id="all"),
        pytest.param({"KEYS": " ".join(f"k{number}" for number in range(70))}, id="too-many-keys"),
        pytest.param({"MY_KEYS": "a", "X_UNIQ_KEY": "b", "KEYS": "c"}, id="names-that-end-alike"),
        pytest.param({"UNIQ_KEY": "schl\u00fcssel", "KEYS": "\u4e2d\u6587 \ud800"}, id="not-ascii"),
    ],
)
def test_keys_taken_from_properties_are_those_that_recovery_finds_in_the_record(
    store: MessageStore, properties: dict[str, str]
) -> None:
    one = draft()
    one.set_properties(properties)
    record = store.message_at(store.append(one).commit_log_offset)
    assert record is not None
    assert [key.encode("utf-8", "replace").decode() for key in one.keys or []] == message_keys(record.properties_text)
    assert one.tags_code == tags_code(record.tags)


def test_transactions_prepared_and_rolled_back_get_no_queue_entry(store: MessageStore) -> None:
    prepared = store.append(draft(sys_flag=0x4, unique_key="P"))
    committed = store.append(draft(sys_flag=0x8, unique_key="C"))
    rolled_back = store.append(draft(b"", sys_flag=0xC, unique_key="R"))
    assert (prepared.queue_offset, committed.queue_offset, rolled_back.queue_offset) == (0, 0, 0)
    assert store.max_offset("orders", 0) == 1
    assert [message.unique_key for message in read_queue(store)] == ["C"]
    assert store.message_at(prepared.commit_log_offset) is not None
    assert [len(store.query_by_key("orders", key, 9, 0, 1 << 60)) for key in "PCR"] == [1, 1, 0]


def test_a_deleted_topic_is_gone_and_starts_again_at_zero(store: MessageStore, tmp_path: Path) -> None:
    fill(store, 40, keys="k")
    store.append(draft(topic="kept"))
    store.delete_topic("orders")
    assert store.topics() == {"kept"}
    assert store.read("orders", 0, 0, 32, 9999).status is ReadStatus.NO_MATCHED_LOGIC_QUEUE
    assert store.query_by_key("orders", "k", 9, 0, 1 << 60) == []
    assert store.append(draft(b"new")).queue_offset == 0
    assert bodies(store) == [b"new"]
    store.close()
    (tmp_path / "store" / "checkpoint").unlink()
    again = open_store(tmp_path / "store")
    assert bodies(again) == [b"new"]
    assert again.verify().is_sound
    again.close()


@pytest.mark.parametrize("name", ["", ".", "..", "../config", "orders/0", "a\0b", "{folder}"])
def test_deleting_what_cannot_be_a_topic_touches_no_folder(store: MessageStore, tmp_path: Path, name: str) -> None:
    fill(store, 1)
    (tmp_path / "kept").mkdir()
    before = sorted(tmp_path.rglob("*"))
    store.delete_topic(name.format(folder=tmp_path / "kept"))
    assert sorted(tmp_path.rglob("*")) == before
    assert bodies(store) != []


def test_deleting_an_unknown_topic_does_nothing(store: MessageStore) -> None:
    store.delete_topic("never-was")
    assert store.topics() == set()


# --- opening again


def test_everything_is_there_after_an_orderly_close(store: MessageStore, tmp_path: Path) -> None:
    fill(store, 100, keys="k")
    end = store.max_commit_log_offset
    store.close()
    again = open_store(tmp_path / "store")
    assert (again.recovery.was_clean, again.recovery.record_count, again.recovery.end) == (True, 0, end)
    assert again.append(draft(b"next")).queue_offset == 100
    assert bodies(again)[-2:] == [b"m99", b"next"]
    assert len(again.query_by_key("orders", "k", 64, 0, 1 << 60)) == 64
    again.close()


def test_the_schedule_topic_keeps_due_times_and_recovers_them(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store")
    due = START_MS + 10_000
    store.append(draft(topic=SCHEDULE_TOPIC, queue_id=2, tags_code=due))
    assert store.queue_entry(SCHEDULE_TOPIC, 2, 0)[2] == due
    store.close()
    (tmp_path / "store" / "checkpoint").unlink()
    again = open_store(tmp_path / "store")
    assert again.queue_entry(SCHEDULE_TOPIC, 2, 0)[2] == due
    again.close()


def test_a_closed_store_refuses_and_closes_twice(store: MessageStore) -> None:
    store.close()
    store.close()
    with pytest.raises(StoreClosed):
        store.append(draft())


@pytest.mark.slow
def test_a_batch_with_more_keys_than_a_file_of_the_index_holds_is_refused_whole(tmp_path: Path) -> None:
    """Stored half, the next message would get a queue offset that the log knows already."""
    config = StoreConfig(segment_bytes=64 << 20, flush="async")
    store = open_store(tmp_path / "keys", config)
    words = " ".join(f"k{number}" for number in range(63))
    with pytest.raises(RecordRefused, match="keys in one batch"):
        store.append_batch([draft(keys=words)] * 4_200)
    assert (store.max_offset("orders", 0), store.max_commit_log_offset) == (0, 0)
    store.append(draft(b"acknowledged", keys=words))
    abandon(store)
    again = open_store(tmp_path / "keys", config)
    assert bodies(again) == [b"acknowledged"]
    assert again.verify().is_sound
    again.close()


def test_what_cannot_be_indexed_once_written_stops_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path / "store")
    store.append(draft(b"one"))

    def fails(self: ConsumeQueue, *entry: int) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(ConsumeQueue, "put", fails)
        with pytest.raises(StoreFailed, match="indexing what was written"):
            store.append(draft(b"two"))
    with pytest.raises(StoreFailed):
        store.append(draft(b"three"))
    abandon(store)
    again = open_store(tmp_path / "store")
    assert bodies(again) == [b"one", b"two"]
    assert again.verify().is_sound
    again.close()


def test_without_a_free_descriptor_messages_are_refused_until_there_is_one(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store")
    store.append(draft(b"one", keys="k"))
    store._mapped.close_all()
    with no_descriptors(), pytest.raises(StoreFull, match="raise the limit of open files"):
        store.append(draft(b"no"))
    with no_descriptors(), pytest.raises(StoreFull, match="raise the limit of open files"):
        store.append(draft(b"no, with a key", keys="k"))
    with no_descriptors(), pytest.raises(StoreFull, match=r"another segment .* raise the limit of open files"):
        store.append(draft(bytes(16_200)))
    store.append(draft(b"two", keys="k"))
    assert bodies(store) == [b"one", b"two"]
    assert store.verify().is_sound
    store.close()


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Nothing can be opened meanwhile."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 8, limits[1]))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for descriptor in taken:
            os.close(descriptor)
