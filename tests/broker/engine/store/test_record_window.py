"""Properties of many records, read ahead."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from broker.engine.store.message_store import MessageStore
from broker.engine.store.record_window import RecordWindow
from broker.engine.store.values import Appended, ReadStatus
from remoting.wire.properties import decode_properties
from tests.support.stores import draft, open_store


@pytest.fixture
def store(tmp_path: Path):
    opened = open_store(tmp_path / "store")
    yield opened
    opened.close()


class CountedLog:
    """The store's log, with what was read from it."""

    def __init__(self, store: MessageStore) -> None:
        self._log = store._log
        self.segment_of = store._log.segment_of
        self.read_bytes: list[int] = []

    def read(self, segment: object, commit_log_offset: int, byte_count: int) -> bytes:
        self.read_bytes.append(byte_count)
        return self._log.read(segment, commit_log_offset, byte_count)


def window_of(store: MessageStore) -> tuple[RecordWindow, CountedLog]:
    log = CountedLog(store)
    return RecordWindow(log, store._reader.properties_at), log  # type: ignore[arg-type]


def properties_of(window: RecordWindow, appended: Appended) -> dict[str, str]:
    properties = window.properties_at(appended.commit_log_offset, appended.total_bytes)
    assert properties is not None
    return decode_properties(properties.decode())


def test_each_record_answers_its_own_properties_whatever_lies_between(store: MessageStore) -> None:
    chosen = random.Random(3)
    stored = []
    for number in range(400):
        store.append(draft(b"x" * chosen.choice([0, 10, 5000]), queue_id=1))
        one = draft(b"x" * chosen.choice([0, 50, 300, 4100]), queue_id=0, keys=f"k{number}")
        stored.append((f"k{number}", store.append(one)))
    window, _ = window_of(store)
    for keys, appended in stored:
        assert properties_of(window, appended)["KEYS"] == keys
        assert window.properties_at(appended.commit_log_offset, appended.total_bytes) == store.properties_of(appended)
    for keys, appended in reversed(stored):
        assert properties_of(window, appended)["KEYS"] == keys


def test_records_side_by_side_are_read_together(store: MessageStore) -> None:
    stored = [store.append(draft(b"x" * 100, keys=f"k{number}")) for number in range(60)]
    window, log = window_of(store)
    for appended in stored:
        properties_of(window, appended)
    assert len(log.read_bytes) < 15


def test_records_far_from_each_other_are_read_alone(store: MessageStore) -> None:
    stored = []
    for _ in range(5):
        stored.append(store.append(draft(b"x" * 100)))
        store.append(draft(b"x" * 7000, queue_id=1))
    window, log = window_of(store)
    for appended in stored:
        properties_of(window, appended)
    assert log.read_bytes == [appended.total_bytes for appended in stored]


def test_an_entry_without_its_record_has_no_properties(store: MessageStore) -> None:
    appended = store.append(draft(b"x" * 100))
    window, _ = window_of(store)
    assert window.properties_at(appended.commit_log_offset + 1, appended.total_bytes) is None
    assert window.properties_at(appended.commit_log_offset, appended.total_bytes - 1) is None
    assert window.properties_at(1 << 40, appended.total_bytes) is None


def test_a_filter_that_lets_nothing_through_looks_at_all(store: MessageStore) -> None:
    for number in range(300):
        store.append(draft(b"x" * 100, keys=f"k{number}"))
    seen: list[str] = []

    def is_wanted(text: bytes) -> bool:
        seen.append(decode_properties(text.decode())["KEYS"])
        return False

    place = 0
    while place < 300:
        result = store.read("orders", 0, place, 32, 1 << 20, properties_match=is_wanted)
        assert result.status is ReadStatus.NO_MATCHED_MESSAGE
        place = result.next_begin_offset
    assert seen == [f"k{number}" for number in range(300)]
