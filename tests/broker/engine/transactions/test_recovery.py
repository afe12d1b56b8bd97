"""What a start finds out, of our own files and of those that Apache's broker wrote."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from broker.engine.transactions import recovery as recovery_module
from broker.engine.transactions.half import committed_copy, next_version, op_message
from broker.engine.transactions.progress import Progress
from broker.engine.transactions.recovery import recover
from remoting.wire.names import HALF_TOPIC, OP_HALF_TOPIC
from remoting.wire.properties import encode_properties
from tests.support.stores import draft, open_store

HOST = ("127.0.0.1", 10911)
NOTHING_KNOWN = Progress(0, 0, 0)


@pytest.fixture
def store(tmp_path):
    store = open_store(tmp_path / "store")
    yield store
    store.close()


def half(store, name: str):
    values = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": name, "REAL_TOPIC": "orders", "REAL_QID": "0"}
    appended = store.append(draft(name.encode(), HALF_TOPIC, properties_text=encode_properties(values)))
    return store.message_at(appended.commit_log_offset)


def op(store, body: bytes) -> None:
    record = op_message([], HOST, 0)
    record.body = body
    store.append(record)


def test_an_empty_store_has_no_transactions(store):
    found = recover(store, NOTHING_KNOWN)
    assert (found.undecided, found.unrecorded, found.marks, found.next_op_offset) == ([], [], [], 0)


def test_op_messages_of_4_9_and_of_5_are_read(store):
    for number in range(6):
        half(store, f"u{number}")
    op(store, b"1")
    op(store, b"2,4,")

    found = recover(store, NOTHING_KNOWN)
    assert found.undecided == [0, 3, 5]
    assert found.marks == [(0, 1), (1, 4)]
    assert found.next_op_offset == 2


def test_an_op_message_ends_no_half_that_was_stored_after_it(store):
    half(store, "u0")
    op(store, b"0,1,")
    half(store, "u1")

    found = recover(store, NOTHING_KNOWN)
    assert found.undecided == [1]
    assert found.marks == [(0, 0)]


def test_more_op_messages_than_one_read_gives(store, monkeypatch):
    monkeypatch.setattr(recovery_module, "OP_READ_MAX", 2)
    for number in range(7):
        half(store, f"u{number}")
        op(store, b"%d," % number)

    assert recover(store, NOTHING_KNOWN).undecided == []


def test_a_copy_is_believed_only_behind_what_is_certain(store):
    first = half(store, "u0")
    second = half(store, "u1")
    store.append(committed_copy(first, "orders", 0))
    store.append(next_version(second, is_checked=True))

    found = recover(store, NOTHING_KNOWN)
    assert (found.unrecorded, found.undecided) == ([0, 1], [2])
    later = recover(store, Progress(0, 0, store.max_commit_log_offset))
    assert later.undecided == [0, 1, 2]


def lost_after(version):
    """A version that followed on this one and is not in the store: no record starts where it stood."""
    return replace(version, commit_log_offset=version.commit_log_offset + 8)


def test_what_followed_on_a_lost_version_ends_the_one_before_it(store):
    committed = half(store, "u0")
    checked = half(store, "u1")
    half(store, "u2")
    store.append(committed_copy(lost_after(committed), "orders", 0))
    store.append(next_version(lost_after(checked), is_checked=True))

    found = recover(store, NOTHING_KNOWN)
    assert (found.unrecorded, found.undecided) == ([0, 1], [2, 3])


def test_what_followed_on_a_lost_version_ends_the_latest_that_is_left(store):
    first = half(store, "u0")
    second = store.message_at(store.append(next_version(first, is_checked=True)).commit_log_offset)
    store.append(committed_copy(lost_after(second), "orders", 0))

    found = recover(store, NOTHING_KNOWN)
    assert (found.unrecorded, found.undecided) == ([0, 1], [])


def test_what_only_claims_to_follow_on_a_lost_version_ends_nothing(store):
    message = half(store, "u0")
    forged = committed_copy(lost_after(message), "orders", 0)
    forged.body = b"something else"
    store.append(forged)

    assert recover(store, NOTHING_KNOWN).undecided == [0]


def test_a_message_that_only_claims_to_be_a_commit_ends_nothing(store):
    message = half(store, "u0")
    forged = committed_copy(message, "orders", 0)
    forged.body = b"something else"
    store.append(forged)

    assert recover(store, NOTHING_KNOWN).undecided == [0]


@pytest.mark.parametrize("progress", [Progress(99, 99, 1 << 40), Progress(-5, -5, 0)], ids=["beyond", "below"])
def test_progress_that_does_not_fit_the_store_is_put_right(store, progress):
    half(store, "u0")
    found = recover(store, progress)
    assert found.undecided in ([], [0])


def test_what_is_settled_is_not_looked_at(store):
    for number in range(3):
        half(store, f"u{number}")
    assert recover(store, Progress(2, 0, 0)).undecided == [2]


def test_an_op_message_of_garbage_is_passed_over(store):
    half(store, "u0")
    for body in (b"", b",", b"-1,", b"many", b"\xff\xfe"):
        record = draft(body or b" ", OP_HALF_TOPIC, tags="d")
        store.append(record)

    assert recover(store, NOTHING_KNOWN).undecided == [0]
