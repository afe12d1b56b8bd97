"""Delayed messages whose table of levels changes while they wait."""

from __future__ import annotations

from broker.engine.schedule.levels import parse_levels
from remoting.wire.names import SCHEDULE_TOPIC
from tests.support.delay_schedule import SECOND_MS
from tests.support.stores import START_MS, abandon, bodies


async def test_delay_keeps_the_due_time_of_what_waits_when_its_level_becomes_longer(schedule):
    schedule.send(b"old", level=1)
    schedule.change_levels("1h")
    schedule.send(b"new", level=1)

    schedule.clock.now_ms += SECOND_MS
    assert schedule.deliver(1) == 1
    schedule.clock.now_ms += 3600 * SECOND_MS - SECOND_MS
    assert schedule.deliver(1) == 1
    assert bodies(schedule.store) == [b"old", b"new"]


async def test_delay_does_not_hold_a_shorter_delay_back_behind_a_longer_one(schedule):
    schedule.send(b"old", level=1)
    schedule.change_levels("1h")
    schedule.send(b"slow", level=1)
    schedule.change_levels("1s")
    schedule.send(b"fast", level=1)
    assert [(entry.key, entry.next_due_ms, entry.waiting_count) for entry in schedule.delivery.agenda()] == [
        ("1", START_MS + SECOND_MS, 3)
    ]

    schedule.clock.now_ms += SECOND_MS
    assert [schedule.deliver(1), schedule.deliver(1), schedule.deliver(1)] == [1, 1, 0]
    schedule.clock.now_ms += 3600 * SECOND_MS
    assert schedule.deliver(1) == 1
    assert bodies(schedule.store) == [b"old", b"fast", b"slow"]


async def test_delay_still_delivers_a_level_that_the_table_lost(schedule):
    schedule.send(b"one", level=5)
    schedule.change_levels("1s 2s")
    schedule.send(b"two", level=5)
    assert schedule.delivery.waiting_count == 2

    schedule.clock.now_ms += 2 * SECOND_MS
    assert [schedule.deliver(2), schedule.deliver(5)] == [1, 0]
    schedule.clock.now_ms += 58 * SECOND_MS
    assert schedule.deliver(5) == 1
    assert bodies(schedule.store) == [b"two", b"one"]


async def test_delay_takes_up_a_level_that_is_new_in_the_table(schedule):
    schedule.change_levels(" ".join(["1s"] * 19))
    schedule.send(b"one", level=19)

    schedule.clock.now_ms += SECOND_MS
    assert schedule.deliver(19) == 1


async def test_delay_remembers_both_tables_over_kills_and_delivers_each_once(schedule):
    for number in range(3):
        schedule.send(b"slow %d" % number, level=2)
    schedule.change_levels("1s 1h")
    schedule.send(b"slowest", level=2)
    schedule.change_levels("1s")
    schedule.send(b"fast", level=1)
    schedule.restart_after_kill()
    assert schedule.levels.current == parse_levels("1s")
    assert schedule.delivery.waiting_count == 5

    schedule.clock.now_ms += SECOND_MS
    assert [schedule.deliver(1), schedule.deliver(2)] == [1, 0]
    schedule.restart_after_kill()
    schedule.clock.now_ms += 4 * SECOND_MS
    assert [schedule.deliver(1), schedule.deliver(2)] == [0, 3]
    schedule.restart_after_kill()
    assert schedule.deliver(2) == 0
    schedule.clock.now_ms += 3600 * SECOND_MS
    assert [schedule.deliver(2), schedule.deliver(2)] == [1, 0]
    assert bodies(schedule.store) == [b"fast", b"slow 0", b"slow 1", b"slow 2", b"slowest"]


async def test_delay_counts_the_segments_of_a_level_apart_over_kills(schedule):
    schedule.change_levels("1h")
    schedule.send(b"slow", level=1)
    schedule.change_levels("1s")
    for number in range(3):
        schedule.send(b"fast %d" % number, level=1)
    schedule.clock.now_ms += SECOND_MS
    assert schedule.deliver(1) == 3
    schedule.restart_after_kill()
    schedule.delivery.saving.begin()
    schedule.restart_after_kill()

    assert [schedule.deliver(1), schedule.delivery.waiting_count] == [0, 1]
    schedule.clock.now_ms += 3600 * SECOND_MS
    assert schedule.deliver(1) == 1
    assert bodies(schedule.store) == [b"fast 0", b"fast 1", b"fast 2", b"slow"]


async def test_delay_remembers_a_segment_that_was_done_before_an_older_one(schedule):
    """The one between two others: it must not be delivered again by the next life."""
    for text, body in (("1h", b"slow"), ("1s", b"fast"), ("2h", b"slowest")):
        schedule.change_levels(text)
        schedule.send(body, level=1)
    schedule.clock.now_ms += SECOND_MS
    assert schedule.deliver(1) == 1
    schedule.delivery.saving.write(None)
    schedule.restart_after_kill()
    schedule.restart_after_kill()

    assert [schedule.deliver(1), schedule.delivery.waiting_count] == [0, 2]
    schedule.clock.now_ms += 7200 * SECOND_MS
    assert [schedule.deliver(1), schedule.deliver(1), schedule.deliver(1)] == [1, 1, 0]
    assert bodies(schedule.store) == [b"fast", b"slow", b"slowest"]


async def test_delay_remembers_a_segment_that_took_over_another_delay(schedule):
    """It was empty when the table changed; what came after is in the same segment, but starts one by the table."""
    schedule.change_levels("1h")
    schedule.send(b"slow", level=1)
    for text, body in (("1s", b"fast"), ("2s", b"next")):
        schedule.change_levels(text)
        schedule.send(body, level=1)
        schedule.clock.now_ms += 2 * SECOND_MS
        assert schedule.deliver(1) == 1
    schedule.delivery.saving.write(None)
    schedule.restart_after_kill()

    assert [schedule.deliver(1), schedule.delivery.waiting_count] == [0, 1]
    assert bodies(schedule.store) == [b"fast", b"next"]


async def test_delay_remembers_segments_of_tables_that_retention_let_go_of(schedule):
    """The oldest is delivered, and gone with its table; that kill finds its copy must not bring the others again."""
    for text, body in (("1h", b"slow"), ("1s", b"fast"), ("2h", b"slowest")):
        schedule.change_levels(text)
        schedule.send(body, level=1)
    schedule.clock.now_ms += SECOND_MS
    assert schedule.deliver(1) == 1
    schedule.delivery.saving.write(None)
    schedule.clock.now_ms += 3600 * SECOND_MS
    assert schedule.deliver(1) == 1
    low = schedule.store.queue_entry(SCHEDULE_TOPIC, 0, 1)[0]
    assert schedule.levels.change(parse_levels("3h"), end=schedule.store.max_commit_log_offset, low=low)
    schedule.restart_after_kill()

    assert [schedule.deliver(1), schedule.delivery.waiting_count] == [0, 1]
    assert bodies(schedule.store) == [b"fast", b"slow"]


async def test_delay_due_times_are_made_again_from_the_table_that_counted(schedule):
    schedule.send(b"one", level=2)
    schedule.change_levels("1s 1h")
    schedule.send(b"two", level=2)
    abandon(schedule.store)
    (schedule.folder / "checkpoint").unlink()
    schedule.delivery.saving.forget()
    schedule._start()

    entries = [schedule.store.queue_entry(SCHEDULE_TOPIC, 1, offset) for offset in (0, 1)]
    assert [entry[2] for entry in entries] == [START_MS + 5 * SECOND_MS, START_MS + 3600 * SECOND_MS]


async def test_delay_pins_the_oldest_that_waits_in_any_lane(schedule):
    assert schedule.delivery.pinned() is None
    schedule.change_levels("1h")
    schedule.send(b"slow", level=1)
    slow = schedule.store.queue_entry(SCHEDULE_TOPIC, 0, 0)[0]
    schedule.change_levels("1s")
    schedule.send(b"fast", level=1)
    schedule.clock.now_ms += SECOND_MS
    schedule.deliver(1)

    assert schedule.delivery.pinned() == slow
