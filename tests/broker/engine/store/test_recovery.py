"""Opening a damaged store: good records stay, bad ones are set aside, indexes come back by themselves."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Appended
from remoting.complaints import ComplaintLog
from remoting.wire.stored_message import decode_message
from tests.support.logged import lines_of
from tests.support.stores import SMALL, abandon, bodies, draft, open_store
from tests.support.waiting import wait_until

SEGMENT = "00000000000000000000"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


def killed_store(folder: Path, count: int = 300) -> list[Appended]:
    store = open_store(folder)
    appended = [
        store.append(draft(b"m%d" % number, queue_id=number % 3, tags=f"t{number % 5}", keys=f"k{number}"))
        for number in range(count)
    ]
    abandon(store)
    return appended


def closed_store(folder: Path, count: int = 300) -> list[Appended]:
    appended = killed_store(folder, count)
    open_store(folder).close()
    return appended


def open_checkpointed(folder: Path) -> MessageStore:
    store = open_store(folder)
    wait_until(lambda: not store._flusher.has_plan, what="the first checkpoint")
    return store


def everything(store: MessageStore) -> list[list[bytes]]:
    return [bodies(store, queue_id=queue_id) for queue_id in range(3)]


def expected(count: int = 300) -> list[list[bytes]]:
    return [[b"m%d" % number for number in range(queue_id, count, 3)] for queue_id in range(3)]


def assert_sound(store: MessageStore) -> None:
    report = store.verify()
    assert report.is_sound, (report.damages, report.problems)


def overwrite(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def test_after_a_kill_everything_is_verified_from_the_checkpoint(folder: Path) -> None:
    appended = killed_store(folder)
    store = open_store(folder)
    report = store.recovery
    assert (report.was_clean, report.verified_from, report.record_count) == (False, 0, 300)
    assert (report.torn, report.damages, report.rebuilt_indexes) == (None, (), None)
    assert report.end == appended[-1].commit_log_offset + appended[-1].total_bytes
    assert everything(store) == expected()
    assert [store.queue_entry("orders", one.queue_id, one.queue_offset) for one in appended] == [
        (one.commit_log_offset, one.total_bytes, one.tags_code) for one in appended
    ]
    assert_sound(store)
    store.close()


def test_a_second_kill_verifies_only_what_came_since(folder: Path) -> None:
    killed_store(folder)
    store = open_checkpointed(folder)
    store.append(draft(b"one more"))
    abandon(store)
    again = open_store(folder)
    assert again.recovery.record_count == 1
    assert bodies(again) == [*expected()[0], b"one more"]
    assert_sound(again)
    again.close()


def remove_queues(folder: Path) -> None:
    shutil.rmtree(folder / "consumequeue")


def remove_one_queue(folder: Path) -> None:
    shutil.rmtree(folder / "consumequeue" / "orders" / "1")


def remove_a_queue_file(folder: Path) -> None:
    (folder / "consumequeue" / "orders" / "1" / "00000000000000000640").unlink()


def cut_a_queue(folder: Path) -> None:
    sorted((folder / "consumequeue" / "orders" / "2").iterdir())[-1].unlink()


def remove_keys(folder: Path) -> None:
    shutil.rmtree(folder / "keyindex")


def spoil_key_header(folder: Path) -> None:
    overwrite(next((folder / "keyindex").iterdir()), 0, bytes(64))


def remove_checkpoint(folder: Path) -> None:
    (folder / "checkpoint").unlink()


def spoil_checkpoint(folder: Path) -> None:
    overwrite(folder / "checkpoint", 512, b"\xff" * 1024)


def checkpoint_of_the_future(folder: Path) -> None:
    for path in sorted((folder / "commitlog").iterdir())[1:]:
        path.unlink()


@pytest.mark.parametrize(
    "harm",
    [
        remove_queues,
        remove_one_queue,
        remove_a_queue_file,
        cut_a_queue,
        remove_keys,
        spoil_key_header,
        remove_checkpoint,
        spoil_checkpoint,
    ],
)
@pytest.mark.parametrize("make", [closed_store, pytest.param(killed_store, marks=pytest.mark.sweep)])
def test_lost_indexes_come_back(folder: Path, harm: Callable[[Path], None], make: Callable[[Path], object]) -> None:
    make(folder)
    if make is killed_store:
        abandon(open_checkpointed(folder))
    harm(folder)
    store = open_store(folder)
    assert store.recovery.rebuilt_indexes
    assert everything(store) == expected()
    assert [decode_message(record).body for record in store.query_by_key("orders", "k150", 9, 0, 1 << 60)] == [b"m150"]
    assert_sound(store)
    store.close()
    again = open_store(folder)
    assert again.recovery.was_clean
    assert again.recovery.rebuilt_indexes is None
    again.close()


def test_a_log_that_ends_before_the_checkpoint_is_taken_as_it_is(folder: Path) -> None:
    closed_store(folder)
    checkpoint_of_the_future(folder)
    store = open_store(folder)
    assert "outside the commit log" in (store.recovery.rebuilt_indexes or "")
    assert everything(store)[0] == expected()[0][: store.max_offset("orders", 0)]
    assert_sound(store)
    store.close()


def test_old_entries_of_a_queue_never_come_back_behind_the_end(folder: Path) -> None:
    """The log lost its tail, the consume queue did not: its entries must not point to messages stored later."""
    appended = killed_store(folder, 9)
    overwrite(folder / "commitlog" / SEGMENT, appended[6].commit_log_offset, bytes(4000))
    store = open_store(folder)
    assert everything(store) == expected(6)
    assert store.append(draft(b"new")).queue_offset == 2
    assert_sound(store)
    store.close()


@pytest.mark.parametrize("victim", [0, 1, 100, 150, 298], ids=lambda number: f"m{number}")
def test_good_records_behind_a_bad_one_stay(folder: Path, victim: int) -> None:
    appended = killed_store(folder)
    bad = appended[victim]
    segment = bad.commit_log_offset // SMALL.segment_bytes * SMALL.segment_bytes
    overwrite(folder / "commitlog" / f"{segment:020d}", bad.commit_log_offset - segment + 90, b"\xff")
    store = open_store(folder)
    (damage,) = store.recovery.damages
    assert (damage.commit_log_offset, damage.byte_count) == (bad.commit_log_offset, bad.total_bytes)
    assert damage.kept_as is not None
    assert len((folder / "quarantine" / damage.kept_as).read_bytes()) == bad.total_bytes
    wanted = expected()
    wanted[victim % 3].remove(b"m%d" % victim)
    assert everything(store) == wanted
    for one in appended:
        entry = store.queue_entry("orders", one.queue_id, one.queue_offset)
        is_last_and_lost = one is bad
        assert entry == (None if is_last_and_lost else (one.commit_log_offset, one.total_bytes, one.tags_code))
    assert store.verify().problems == ()
    store.close()


def test_a_whole_segment_of_garbage_is_stepped_over(folder: Path) -> None:
    appended = killed_store(folder)
    path = folder / "commitlog" / "00000000000000016384"
    path.write_bytes(b"\xa5" * SMALL.segment_bytes)
    lost = {one.commit_log_offset for one in appended if one.commit_log_offset // SMALL.segment_bytes == 1}
    store = open_store(folder)
    assert [damage.byte_count for damage in store.recovery.damages] == [SMALL.segment_bytes]
    kept = sum(map(len, everything(store)))
    assert kept == 300 - len(lost) > 100
    assert store.append(draft(queue_id=0)).queue_offset == 100
    store.close()


def test_a_missing_segment_is_stepped_over(folder: Path) -> None:
    appended = killed_store(folder)
    (folder / "commitlog" / "00000000000000016384").unlink()
    lost = [one for one in appended if one.commit_log_offset // SMALL.segment_bytes == 1]
    store = open_store(folder)
    assert len(store.recovery.damages) == 1
    assert sum(map(len, everything(store))) == 300 - len(lost)
    store.close()


def test_a_lost_first_segment_moves_the_min_offset(folder: Path) -> None:
    appended = closed_store(folder)
    (folder / "commitlog" / SEGMENT).unlink()
    store = open_store(folder)
    kept = [one for one in appended if one.commit_log_offset >= SMALL.segment_bytes]
    for queue_id in range(3):
        first = next(one for one in kept if one.queue_id == queue_id)
        assert store.min_offset("orders", queue_id) == first.queue_offset
        assert store.read("orders", queue_id, 0, 32, 9999).next_begin_offset == first.queue_offset
        assert store.offset_by_time("orders", queue_id, 0) == first.queue_offset
    assert everything(store) == [
        [b"m%d" % (3 * one.queue_offset + queue_id) for one in kept if one.queue_id == queue_id]
        for queue_id in range(3)
    ]
    store.close()
    (folder / "checkpoint").unlink()
    rebuilt = open_store(folder)
    assert rebuilt.min_offset("orders", 0) == next(one.queue_offset for one in kept if one.queue_id == 0)
    assert rebuilt.max_offset("orders", 0) == 100
    rebuilt.close()


def test_a_record_in_the_body_of_a_damaged_one_is_not_brought_to_life(folder: Path) -> None:
    store = open_store(folder)
    store.append(draft(b"first"))
    outer = store.append(draft(store.record_at(0) or b""))
    store.append(draft(b"last"))
    abandon(store)
    overwrite(folder / "commitlog" / SEGMENT, outer.commit_log_offset + 8, b"\xff")
    again = open_store(folder)
    assert bodies(again) == [b"first", b"last"]
    again.close()


def test_the_index_survives_many_reopenings(folder: Path) -> None:
    for number in range(20):
        store = open_store(folder)
        store.append(draft(b"%d" % number, keys=f"k{number} all"))
        (store.close if number % 3 else lambda: abandon(store))()  # noqa: B023
    store = open_store(folder)
    assert len(store.query_by_key("orders", "all", 64, 0, 1 << 60)) == 20
    assert all(len(store.query_by_key("orders", f"k{number}", 9, 0, 1 << 60)) == 1 for number in range(20))
    assert_sound(store)
    store.close()


def test_verify_finds_damage_in_an_orderly_closed_store(folder: Path) -> None:
    appended = closed_store(folder)
    overwrite(folder / "commitlog" / SEGMENT, appended[1].commit_log_offset + 100, b"\xff")
    store = open_store(folder)
    assert store.recovery.was_clean
    report = store.verify()
    assert [damage.commit_log_offset for damage in report.damages] == [appended[1].commit_log_offset]
    assert report.record_count == 299
    assert not report.is_sound
    store.close()


def test_what_lies_behind_a_blank_is_nobodys(folder: Path) -> None:
    killed_store(folder)
    overwrite(folder / "commitlog" / SEGMENT, SMALL.segment_bytes - 5, b"\xff")
    store = open_store(folder)
    assert store.recovery.damages == ()
    assert_sound(store)
    store.close()


def test_verify_finds_a_wrong_queue_entry_and_reading_steps_over_it(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    closed_store(folder)
    store = open_store(folder)
    overwrite(folder / "consumequeue" / "orders" / "0" / SEGMENT, 5 * 20 + 7, b"\x05")
    assert "orders/0@5" in store.verify().problems[0]
    found = bodies(store)
    assert len(found) == 99
    assert "a queue entry points to" in caplog.text
    store.close()


def test_wrong_queue_entries_are_logged_once_a_minute_and_not_for_each_read(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    closed_store(folder)
    now_s = [0.0]
    complaints = ComplaintLog(clock=lambda: now_s[0])
    store = MessageStore.open(folder, SMALL, complaints=complaints)
    for entry in (5, 6):
        overwrite(folder / "consumequeue" / "orders" / "0" / SEGMENT, entry * 20 + 7, b"\xff")
    for _ in range(10):
        assert len(bodies(store)) == 98
    (line,) = lines_of(caplog, "remoting")
    assert line.startswith("topic orders: a queue entry points to commit-log offset ")
    now_s[0] = 60.0
    complaints.report_left_out()
    assert lines_of(caplog, "remoting")[1:] == ["orders, damaged queue entry: 19 more in 60 s were not logged"]
    store.close()


@pytest.mark.parametrize("position", [0, 5 * 20 + 7, 5 * 20 + 11, 5 * 20 + 19, 31 * 20 + 19])
@pytest.mark.parametrize("is_killed", [False, True], ids=["clean", "killed"])
def test_a_bit_that_changed_in_a_consume_queue_is_noticed_at_the_start(
    folder: Path, position: int, is_killed: bool
) -> None:
    closed_store(folder)
    if is_killed:
        store = open_store(folder)
        store.append(draft(b"later", "bills"))
        abandon(store)
    path = folder / "consumequeue" / "orders" / "0" / SEGMENT
    overwrite(path, position, bytes([path.read_bytes()[position] ^ 4]))

    store = open_store(folder)
    assert "a bit of it changed" in str(store.recovery.rebuilt_indexes)
    assert everything(store) == expected()
    assert_sound(store)
    store.close()
    again = open_store(folder)
    assert again.recovery.rebuilt_indexes is None
    again.close()


def test_sums_that_cannot_be_read_cost_only_the_comparison(folder: Path) -> None:
    closed_store(folder)
    (folder / "queue_sums.json").write_text("[]")

    store = open_store(folder)
    assert store.recovery.rebuilt_indexes is None
    assert everything(store) == expected()
    store.close()


def test_a_store_copied_while_it_was_open_is_verified_from_its_beginning(folder: Path, tmp_path: Path) -> None:
    """The log of one moment, the checkpoint of a later one: what lies between must not be believed."""
    copy = tmp_path / "copy"
    store = open_store(folder)
    for number in range(100):
        store.append(draft(b"%d" % number))
    shutil.copytree(folder, copy)
    for number in range(100, 200):
        store.append(draft(b"%d" % number))
    abandon(store)
    open_store(folder).close()
    shutil.copyfile(folder / "checkpoint", copy / "checkpoint")

    store = open_store(copy)
    assert store.recovery.rebuilt_indexes is not None
    assert bodies(store) == [b"%d" % number for number in range(100)]
    assert_sound(store)
    store.close()


def test_a_copy_of_a_closed_store_opens_at_once(folder: Path, tmp_path: Path) -> None:
    closed_store(folder)
    shutil.copytree(folder, tmp_path / "copy")

    store = open_store(tmp_path / "copy")
    assert store.recovery.rebuilt_indexes is None
    assert store.recovery.record_count == 0
    store.close()


def test_a_copy_of_an_open_store_is_verified_from_its_beginning(folder: Path, tmp_path: Path) -> None:
    killed_store(folder)
    shutil.copytree(folder, tmp_path / "copy")

    store = open_store(tmp_path / "copy")
    assert store.recovery.rebuilt_indexes == "the store was copied while it was open"
    assert everything(store) == expected()
    store.close()


def test_a_damaged_description_is_taken_from_its_backup(folder: Path) -> None:
    closed_store(folder)
    (folder / "store.json").write_text("{")

    store = open_store(folder)
    assert everything(store) == expected()
    store.close()
