"""Op messages: gathered, never before what they speak of, and how far they are certain."""

from __future__ import annotations

import pytest

from broker.engine.store.errors import StoreFull
from broker.engine.transactions import op_messages as op_messages_module
from broker.engine.transactions.op_messages import OP_BYTES_MAX, OpMessages
from remoting.complaints import ComplaintLog
from remoting.wire.names import OP_HALF_TOPIC
from tests.support.logged import lines_of
from tests.support.stores import ManualClock, bodies, draft, open_store

HOST = ("127.0.0.1", 10911)


@pytest.fixture
def store(tmp_path):
    store = open_store(tmp_path / "store")
    yield store
    store.close()


@pytest.fixture
async def ops(store):
    ops = OpMessages(store, HOST, ComplaintLog(), ManualClock())
    yield ops
    ops.stop()


def end(ops, *half_offsets: int) -> None:
    for half_offset in half_offsets:
        ops.begin(half_offset)
        ops.follow(half_offset)


async def test_a_full_record_is_written_at_once(store, ops):
    count = OP_BYTES_MAX // len("1000,")
    end(ops, *range(1_000, 1_000 + count + 1))

    assert len(bodies(store, OP_HALF_TOPIC)) == 1
    assert len(bodies(store, OP_HALF_TOPIC)[0]) >= OP_BYTES_MAX


async def test_what_is_not_written_is_open(store, ops):
    store.append(draft(b"before"))
    ops.begin(7)
    begun_at = store.max_commit_log_offset
    store.append(draft(b"the copy"))
    ops.begin(9)

    assert ops.lowest_open == 7
    assert ops.scan_from <= begun_at
    ops.follow(7)
    ops.write()
    assert ops.lowest_open == 9
    ops.undo(9)
    assert ops.lowest_open is None


async def test_a_disk_that_is_full_is_tried_again(store, ops, monkeypatch):
    end(ops, 1)
    with monkeypatch.context() as patch:
        patch.setattr(store, "append", _full)
        ops.write()
    assert ops.lowest_open == 1

    end(ops, 2)
    ops.write()
    assert bodies(store, OP_HALF_TOPIC) == [b"1,2,"]
    assert ops.lowest_open is None


async def test_a_disk_that_is_full_is_logged_once_a_minute_and_not_for_each_end(store, monkeypatch, caplog):
    now_s = [0.0]
    complaints = ComplaintLog(clock=lambda: now_s[0])
    ops = OpMessages(store, HOST, complaints, ManualClock())
    monkeypatch.setattr(store, "append", _full)
    count = OP_BYTES_MAX // len("1000,")
    end(ops, *range(1_000, 1_000 + count + 20))
    assert len(lines_of(caplog, "remoting")) == 1
    now_s[0] = 60.0
    complaints.report_left_out()
    assert lines_of(caplog, "remoting")[1:] == [f"{OP_HALF_TOPIC}, not stored: 19 more in 60 s were not logged"]
    ops.stop()


def _full(record):
    raise StoreFull("no space; free some")


async def test_nothing_to_write_writes_nothing(store, ops):
    ops.write()
    assert bodies(store, OP_HALF_TOPIC) == []


async def test_an_op_message_is_needed_until_all_its_halves_are_settled(ops):
    for op_offset, highest in enumerate((3, 9, 5)):
        ops.remember(op_offset, highest)

    assert [ops.progress(half) for half in (0, 4, 9, 10)] == [0, 1, 1, 3]


async def test_after_a_start_the_op_messages_before_it_are_not_needed(ops):
    ops.start_at(12)
    assert ops.progress(100) == 12


async def test_many_op_messages_are_remembered_in_bounded_memory_and_none_is_given_up_early(ops, monkeypatch):
    monkeypatch.setattr(op_messages_module, "MARKS_MAX", 8)
    highest = [number * 10 for number in range(1_001)]
    for op_offset, half in enumerate(highest):
        ops.remember(op_offset, half)

    assert len(ops._marks) <= 9
    assert all(ops.progress(half) <= op_offset for op_offset, half in enumerate(highest))
    assert ops.progress(highest[-1] + 1) == 1_001
