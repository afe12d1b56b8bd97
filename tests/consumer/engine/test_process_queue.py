from __future__ import annotations

import random

import pytest

from consumer.engine.process_queue import OVERDUE_MESSAGES_MAX, CachedMessage, ProcessQueue
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.stored_message import StoredMessage

QUEUE = MessageQueue("orders", "broker-a", 0)


def filled(*offsets: int, body: bytes = b"four") -> tuple[ProcessQueue, list[CachedMessage]]:
    process_queue = ProcessQueue(QUEUE, now_ms=1000)
    added = process_queue.put(
        (StoredMessage(topic="orders", queue_id=0, queue_offset=offset, body=body) for offset in offsets),
        next_offset=max(offsets) + 1,
    )
    return process_queue, added


@pytest.mark.parametrize(
    ("finished", "progress"),
    [
        pytest.param([10], 11, id="the first moves it to the second"),
        pytest.param([11], 10, id="the second does not move it past the first"),
        pytest.param([11, 10], 12, id="the first moves it past all that are finished"),
        pytest.param([10, 11, 12], 13, id="with nothing left it is one past the last"),
        pytest.param([12, 11, 10], 13, id="in reverse too"),
    ],
)
def test_progress_is_the_smallest_unfinished_offset(finished: list[int], progress: int) -> None:
    process_queue, added = filled(10, 11, 12)
    by_offset = {cached.stored.queue_offset: cached for cached in added}
    assert [process_queue.remove([by_offset[offset]]) for offset in finished][-1] == progress


def test_progress_includes_what_was_filtered_out_behind_the_last_message() -> None:
    process_queue = ProcessQueue(QUEUE, now_ms=0)
    (cached,) = process_queue.put([StoredMessage(topic="orders", queue_id=0, queue_offset=10)], next_offset=42)
    assert process_queue.remove([cached]) == 42


def test_progress_of_an_empty_queue_is_unknown() -> None:
    process_queue, added = filled(10)
    process_queue.remove([added[0]])
    assert process_queue.remove([added[0]]) == -1


def test_progress_skips_offsets_that_were_never_pulled() -> None:
    process_queue, added = filled(10, 17, 30)
    assert process_queue.remove([added[0]]) == 17


@pytest.mark.parametrize("seed", range(10))
def test_progress_never_passes_an_unfinished_message_in_any_order(seed: int) -> None:
    chance = random.Random(seed)
    process_queue = ProcessQueue(QUEUE, now_ms=0)
    open_offsets: dict[int, CachedMessage] = {}
    next_offset = 0
    for _ in range(300):
        if chance.random() < 0.5 or not open_offsets:
            batch = [StoredMessage(topic="orders", queue_id=0, queue_offset=next_offset + step) for step in range(3)]
            next_offset += chance.randrange(3, 6)
            open_offsets.update(
                (cached.stored.queue_offset, cached) for cached in process_queue.put(batch, next_offset)
            )
        else:
            offset = chance.choice(list(open_offsets))
            progress = process_queue.remove([open_offsets.pop(offset)])
            assert progress == min(open_offsets, default=next_offset)
            assert process_queue.message_count == len(open_offsets)


def test_a_message_that_is_here_already_is_not_added_again() -> None:
    process_queue, _ = filled(10, 11)
    again = process_queue.put([StoredMessage(topic="orders", queue_id=0, queue_offset=11, body=b"four")], 12)
    assert again == []
    assert process_queue.message_count == 2
    assert process_queue.body_bytes == 8


def test_bytes_and_span_follow_what_is_cached() -> None:
    process_queue, added = filled(10, 11, 50)
    assert (process_queue.body_bytes, process_queue.span) == (12, 40)
    process_queue.remove([added[0]])
    assert (process_queue.body_bytes, process_queue.span) == (8, 39)
    process_queue.remove([added[2]])
    assert (process_queue.body_bytes, process_queue.span) == (4, 0)
    assert (process_queue.offset_min, process_queue.offset_max) == (11, 11)


def test_only_messages_at_the_head_whose_listener_runs_too_long_are_overdue() -> None:
    process_queue, added = filled(1, 2, 3, 4)
    added[0].started_ms, added[1].started_ms, added[3].started_ms = 1000, 1500, 1000
    assert process_queue.overdue(now_ms=2000, timeout_ms=1000) == []
    assert process_queue.overdue(now_ms=2001, timeout_ms=1000) == [added[0]]
    # The third waits for a thread: it is not overdue, and nothing behind it is looked at.
    assert process_queue.overdue(now_ms=9000, timeout_ms=1000) == added[:2]


def test_one_scan_finds_a_limited_number_of_overdue_messages() -> None:
    process_queue, added = filled(*range(40))
    for cached in added:
        cached.started_ms = 1
    assert process_queue.overdue(now_ms=5000, timeout_ms=1000) == added[:OVERDUE_MESSAGES_MAX]


def test_a_dropped_queue_holds_nothing() -> None:
    process_queue, added = filled(1, 2)
    process_queue.drop()
    assert process_queue.is_dropped
    assert not process_queue.holds(added[0])
    assert process_queue.remove([added[0]]) == -1
