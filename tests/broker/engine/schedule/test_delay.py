"""Delayed messages on a real store: never early, in order, once, also over a kill."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from broker.engine.schedule import delay as delay_module
from broker.engine.schedule.delay import DelayedDelivery
from broker.engine.schedule.entering import enter_schedule
from broker.engine.schedule.level_history import LevelHistory
from broker.engine.schedule.level_segments import CLOCK_JUMP_TOLERANCE_MS
from broker.engine.schedule.levels import DEFAULT_LEVELS, parse_levels
from broker.engine.schedule.progress import DelayProgress, ProgressFile, decode_progress, encode_progress
from broker.engine.store.errors import StoreFull
from remoting.wire.names import SCHEDULE_TOPIC
from remoting.wire.properties import decode_properties
from remoting.wire.tags import tags_code
from tests.support.stores import SMALL, START_MS, ManualClock, abandon, bodies, draft, open_store, read_queue

SECOND_MS = 1_000
LEVEL = 3
WAIT_MS = 10_000


class Schedule:
    """A store and the delivery on it, as a broker life has them; `restart_after_kill` begins the next life."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.sooner_count = 0
        self._start()

    def _start(self) -> None:
        self.levels = LevelHistory(self.folder / "config", DEFAULT_LEVELS)
        config = replace(SMALL, delay_levels_at=self.levels.delays_ms_at)
        self.store = open_store(self.folder, config, self.clock)
        self.file = ProgressFile(self.folder / "config" / "delayOffset.json")
        self.delivery = DelayedDelivery(self.store, self.levels, self.file, self._reschedule, self.clock)
        self.delivery.recover()
        self.store.add_append_listeners(self.delivery.appended)

    def _reschedule(self) -> None:
        self.sooner_count += 1

    def restart_after_kill(self) -> None:
        abandon(self.store)
        self.delivery.saving.forget()
        self._start()

    def close(self) -> None:
        self.delivery.saving.forget()
        self.store.close()

    def send(self, body: bytes, level: int = LEVEL, **fields) -> None:
        message = draft(body, **fields)
        enter_schedule(message, decode_properties(message.properties_text), level, self.levels.current, self.clock())
        self.store.append(message)

    def change_levels(self, text: str) -> None:
        end, low = self.store.max_commit_log_offset, self.store.min_commit_log_offset
        assert self.levels.change(parse_levels(text), end=end, low=low)
        self.delivery.levels_changed()

    def deliver(self, level: int = LEVEL, until_ms: int | None = None) -> int:
        until_ms = self.clock() if until_ms is None else until_ms
        return self.delivery.carry_out(str(level), until_ms).count


@pytest.fixture
async def schedule(tmp_path):
    schedule = Schedule(tmp_path / "store")
    yield schedule
    schedule.close()


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


# over restarts


async def test_delay_survives_a_kill_while_it_waits(schedule):
    schedule.send(b"one")
    schedule.restart_after_kill()
    schedule.clock.now_ms += WAIT_MS

    assert schedule.deliver() == 1
    assert bodies(schedule.store) == [b"one"]


async def test_delay_is_not_delivered_again_after_a_kill_right_behind_its_delivery(schedule):
    for number in range(4):
        schedule.send(b"%d" % number)
    schedule.clock.now_ms += WAIT_MS
    schedule.deliver()
    schedule.restart_after_kill()

    assert schedule.deliver() == 0
    assert bodies(schedule.store) == [b"0", b"1", b"2", b"3"]


async def test_delay_goes_on_behind_what_was_delivered_before_a_kill(schedule, monkeypatch):
    monkeypatch.setattr(delay_module, "STEP_MESSAGES_MAX", 2)
    for number in range(5):
        schedule.send(b"%d" % number)
    schedule.clock.now_ms += WAIT_MS
    for _ in range(3):
        schedule.deliver()
        schedule.restart_after_kill()

    assert bodies(schedule.store) == [b"0", b"1", b"2", b"3", b"4"]


async def test_delay_is_not_lost_when_the_kill_took_the_copy_too(schedule):
    schedule.send(b"one")
    schedule.clock.now_ms += WAIT_MS
    schedule.file.write(DelayProgress({}, delivering_from=schedule.store.max_commit_log_offset))
    schedule.restart_after_kill()

    assert schedule.deliver() == 1


async def test_delay_is_not_delivered_again_after_a_clean_stop(schedule):
    schedule.send(b"one")
    schedule.clock.now_ms += WAIT_MS
    schedule.deliver()
    await schedule.delivery.stop()
    schedule.store.close()
    schedule._start()

    assert decode_progress((schedule.folder / "config" / "delayOffset.json").read_bytes()).delivering_from is None
    assert schedule.deliver() == 0


async def test_delay_progress_is_found_in_the_log_when_the_file_is_gone(schedule):
    schedule.send(b"one")
    schedule.send(b"two")
    schedule.clock.now_ms += WAIT_MS
    schedule.deliver(until_ms=START_MS + WAIT_MS)
    schedule.send(b"three")
    for path in (schedule.folder / "config").iterdir():
        path.unlink()
    schedule.restart_after_kill()
    schedule.clock.now_ms += WAIT_MS

    assert schedule.deliver() == 1
    assert bodies(schedule.store) == [b"one", b"two", b"three"]


async def test_delay_progress_beyond_the_queue_is_brought_back_into_it(schedule, caplog):
    schedule.file.write(DelayProgress({LEVEL: 1_000}))
    schedule.restart_after_kill()
    schedule.send(b"one")
    schedule.clock.now_ms += WAIT_MS

    assert schedule.deliver() == 1
    assert "going on at 0" in caplog.text


async def test_delay_does_not_take_a_message_for_a_copy_that_only_looks_like_one(schedule):
    schedule.send(b"one")
    schedule.send(b"two")
    text = "DELAY\x013\x02REAL_TOPIC\x01orders\x02REAL_QID\x010\x02"
    schedule.file.write(DelayProgress({}, delivering_from=0))
    schedule.store.append(draft(b"like two", properties_text=text, prepared_transaction_offset=2))
    schedule.store.append(draft(b"like none", properties_text=text, prepared_transaction_offset=9))
    schedule.restart_after_kill()
    schedule.clock.now_ms += WAIT_MS

    assert schedule.deliver() == 2


# the file


def test_progress_is_written_in_rocketmqs_format():
    text = encode_progress(DelayProgress({3: 4, 1: 17}, counter=2, changed_ms=5))

    assert text == b'{"dataVersion":{"counter":2,"stateVersion":0,"timestamp":5},"offsetTable":{1:17,3:4}}'


@pytest.mark.parametrize("delivering_from", [None, 0, 77])
def test_progress_is_read_as_it_was_written(delivering_from):
    progress = DelayProgress({3: 4, 18: 2**40}, delivering_from, counter=9, changed_ms=5)

    assert decode_progress(encode_progress(progress)) == progress


def test_progress_reads_what_apache_writes():
    text = b'{\n\t"dataVersion":{"counter":1,"stateVersion":0,"timestamp":1},\n\t"offsetTable":{3:5,4:1\n\t}\n}'

    assert decode_progress(text).next_offsets == {3: 5, 4: 1}


def test_progress_takes_the_backup_when_the_file_is_garbage(tmp_path, caplog):
    file = ProgressFile(tmp_path / "delayOffset.json")
    file.write(DelayProgress({1: 1}))
    file.write(DelayProgress({1: 2}))
    (tmp_path / "delayOffset.json").write_bytes(b"{")

    assert file.read().next_offsets == {1: 1}
    assert "cannot be read" in caplog.text


def test_progress_is_none_without_a_file(tmp_path):
    assert ProgressFile(tmp_path / "delayOffset.json").read() is None


# a table of levels that changes


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
