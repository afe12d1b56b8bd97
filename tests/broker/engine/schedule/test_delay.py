"""Delayed messages on a real store: never early, in order, once."""

from __future__ import annotations

import errno

import pytest

from broker.engine.schedule import delay as delay_module
from broker.engine.schedule.level_segments import CLOCK_JUMP_TOLERANCE_MS
from broker.engine.store.errors import StoreFull
from remoting.wire.names import SCHEDULE_TOPIC
from remoting.wire.tags import tags_code
from tests.support.delay_schedule import LEVEL, SECOND_MS, WAIT_MS, Schedule
from tests.support.stores import START_MS, bodies, read_queue


async def test_delay_waits_in_the_queue_of_its_level(schedule):
    schedule.send(b"one")

    assert bodies(schedule.store, "orders") == []
    assert bodies(schedule.store, SCHEDULE_TOPIC, LEVEL - 1) == [b"one"]


async def test_delay_is_never_early_and_comes_at_its_millisecond(schedule):
    schedule.send(b"one")

    schedule.clock.now_ms += WAIT_MS - 1
    assert schedule.deliver() == 0
    schedule.clock.now_ms += 1
    assert schedule.deliver() == 1
    assert bodies(schedule.store) == [b"one"]


async def test_delay_is_not_early_for_a_driver_whose_clock_is_ahead(schedule):
    schedule.send(b"one")

    assert schedule.deliver(until_ms=schedule.clock() + 10 * WAIT_MS) == 0


async def test_delay_goes_no_further_than_the_step_says(schedule):
    schedule.send(b"one")
    schedule.clock.now_ms += 1
    schedule.send(b"two")
    schedule.clock.now_ms += WAIT_MS

    assert schedule.deliver(until_ms=START_MS + WAIT_MS) == 1
    assert bodies(schedule.store) == [b"one"]


async def test_delay_delivers_in_order_and_once(schedule):
    for number in range(5):
        schedule.send(b"%d" % number)
    schedule.clock.now_ms += WAIT_MS

    assert schedule.deliver() == 5
    assert schedule.deliver() == 0
    assert bodies(schedule.store) == [b"0", b"1", b"2", b"3", b"4"]


async def test_delay_delivers_a_bounded_number_per_step(schedule, monkeypatch):
    monkeypatch.setattr(delay_module, "STEP_MESSAGES_MAX", 2)
    for number in range(3):
        schedule.send(b"%d" % number)
    schedule.clock.now_ms += WAIT_MS

    assert [schedule.deliver(), schedule.deliver(), schedule.deliver()] == [2, 1, 0]


async def test_delay_delivers_what_was_sent_with_its_own_tags_keys_and_times(schedule):
    schedule.send(b"one", queue_id=2, tags="paid", keys="k1", flag=7, reconsume_times=4)
    schedule.clock.now_ms += WAIT_MS
    schedule.deliver()

    (message,) = read_queue(schedule.store, "orders", 2)
    assert (message.tags, message.keys, message.flag, message.reconsume_times) == ("paid", ["k1"], 7, 4)
    assert message.born_timestamp_ms == START_MS
    assert message.store_timestamp_ms == START_MS + WAIT_MS
    assert message.properties["DELAY"] == "3"
    assert message.properties["REAL_TOPIC"] == "orders"
    assert schedule.store.queue_entry("orders", 2, 0)[2] == tags_code("paid")


async def test_delay_levels_do_not_wait_for_each_other(schedule):
    schedule.send(b"slow", level=4)
    schedule.send(b"fast", level=1)
    schedule.clock.now_ms += SECOND_MS

    assert [schedule.deliver(4), schedule.deliver(1)] == [0, 1]


async def test_delay_agenda_names_the_first_due_of_each_level_and_how_many_wait(schedule):
    schedule.send(b"1", level=1)
    schedule.clock.now_ms += 100
    schedule.send(b"2", level=1)
    schedule.send(b"3", level=4)

    agenda = {entry.key: (entry.next_due_ms, entry.waiting_count) for entry in schedule.delivery.agenda()}
    assert agenda == {"1": (START_MS + 1_000, 2), "4": (START_MS + 100 + 30_000, 1)}
    assert schedule.delivery.next_due_ms == START_MS + 1_000
    assert schedule.delivery.waiting_count == 3


async def test_delay_agenda_is_empty_when_all_is_delivered_and_says_how_late_the_last_was(schedule):
    schedule.send(b"1")
    schedule.clock.now_ms += WAIT_MS + 42
    result = schedule.delivery.carry_out(str(LEVEL), schedule.clock())

    assert result.late_ms == 42
    assert schedule.delivery.agenda() == []
    assert schedule.delivery.next_due_ms is None


async def test_delay_tells_when_a_level_that_was_empty_has_something(schedule):
    schedule.send(b"1")
    schedule.send(b"2")

    assert schedule.sooner_count == 1


async def test_delay_refuses_a_level_that_does_not_exist(schedule):
    with pytest.raises(KeyError):
        schedule.delivery.carry_out("99", schedule.clock())


async def test_delay_waits_when_the_clock_is_set_back_a_little(schedule):
    schedule.send(b"1")
    schedule.clock.now_ms -= 5_000

    assert schedule.deliver(until_ms=START_MS + WAIT_MS) == 0


async def test_delay_delivers_after_its_delay_what_a_clock_set_back_far_would_hold_for_ever(tmp_path):
    schedule = Schedule(tmp_path / "store")
    schedule.send(b"1")
    schedule.clock.now_ms -= CLOCK_JUMP_TOLERANCE_MS + WAIT_MS
    schedule.restart_after_kill()

    assert schedule.deliver() == 0
    schedule.clock.now_ms += WAIT_MS
    assert schedule.deliver() == 1
    schedule.close()


async def test_delay_does_not_wait_for_a_clock_that_was_set_back_far_meanwhile(schedule):
    schedule.send(b"1")
    schedule.clock.now_ms -= CLOCK_JUMP_TOLERANCE_MS + WAIT_MS

    due_ms = schedule.clock() + WAIT_MS
    assert schedule.delivery.next_due_ms == due_ms
    schedule.clock.now_ms = due_ms
    assert [entry.next_due_ms for entry in schedule.delivery.agenda()] == [due_ms]
    assert schedule.deliver() == 1


async def test_delay_steps_over_a_message_that_was_damaged(schedule, caplog):
    for number in range(4):
        schedule.send(b"number %d" % number)
    places = [schedule.store.queue_entry(SCHEDULE_TOPIC, LEVEL - 1, number)[0] for number in range(4)]
    with (schedule.folder / "commitlog" / f"{0:020d}").open("r+b") as log:
        for damaged in (0, 2):
            log.seek(places[damaged] + 90)
            log.write(b"!")
    schedule.restart_after_kill()
    schedule.clock.now_ms += WAIT_MS

    assert schedule.delivery.next_due_ms == START_MS + WAIT_MS
    assert schedule.deliver() == 2
    assert bodies(schedule.store) == [b"number 1", b"number 3"]
    assert "entries 2 to 2 are lost" in caplog.text
    assert schedule.delivery.next_due_ms is None


async def test_delay_is_not_held_up_by_a_message_that_can_never_be_stored(schedule, caplog):
    for number in range(3):
        schedule.send(b"%d" % number, queue_id=2**31 if number == 1 else 0)
    schedule.clock.now_ms += WAIT_MS

    assert schedule.deliver() == 2
    assert bodies(schedule.store) == [b"0", b"2"]
    assert "entry 1 cannot be delivered: no queue can be named" in caplog.text


async def test_delay_counts_what_was_stored_before_the_disk_was_full(schedule, monkeypatch):
    """One that can never be stored makes all of its step go one by one; the third finds no room."""
    for number in range(4):
        schedule.send(b"%d" % number, queue_id=2**31 if number == 1 else 0)
    schedule.clock.now_ms += WAIT_MS
    append_batch = schedule.store.append_batch

    def full_for_the_third(drafts):
        if [draft.body for draft in drafts] == [b"2"]:
            raise StoreFull("free space")
        return append_batch(drafts)

    with monkeypatch.context() as patch:
        patch.setattr(schedule.store, "append_batch", full_for_the_third)
        with pytest.raises(StoreFull):
            schedule.deliver()
    assert schedule.deliver() == 2
    assert bodies(schedule.store) == [b"0", b"2", b"3"]


async def test_delay_is_refused_while_its_progress_cannot_be_written_and_comes_once_it_can(schedule, monkeypatch):
    schedule.send(b"one")
    schedule.clock.now_ms += WAIT_MS

    def full(progress):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(schedule.file, "write", full)
        for _ in range(2):
            with pytest.raises(StoreFull, match=r"delayOffset.json cannot be written"):
                schedule.deliver()
    assert bodies(schedule.store) == []
    assert schedule.deliver() == 1
    schedule.restart_after_kill()
    assert schedule.deliver() == 0
    assert bodies(schedule.store) == [b"one"]
