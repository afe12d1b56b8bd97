"""Timers on a real store: never early, in order, once, recalled for good, whatever becomes of their index."""

from __future__ import annotations

import errno
import logging

import pytest

from broker.engine.schedule import timer as timer_module
from broker.engine.schedule import timer_index, timer_runs
from broker.engine.schedule.entering import enter_timer
from broker.engine.schedule.timer import TimerDelivery
from broker.engine.store.errors import StoreFull
from remoting.wire.errors import MessageError
from remoting.wire.names import TIMER_TOPIC
from remoting.wire.properties import decode_properties
from remoting.wire.tags import tags_code
from tests.support.stores import START_MS, ManualClock, abandon, bodies, draft, open_store, read_queue

DAY_S = 86_400
MAX_DELAY_S = 3 * DAY_S
SLOT = START_MS // 1000 * 1000


class Timers:
    """A store and the delivery on it, as a broker life has them; `restart_after_kill` begins the next life."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.sooner_count = 0
        self._start()

    def _start(self) -> None:
        self.store = open_store(self.folder, clock=self.clock)
        self.delivery = TimerDelivery(self.store, self.folder, self._reschedule, self.clock)
        self.delivery.recover()
        self.store.add_append_listeners(self.delivery.appended)

    def _reschedule(self) -> None:
        self.sooner_count += 1

    def restart_after_kill(self) -> None:
        self.forget_timer()
        abandon(self.store)
        self._start()

    def forget_timer(self) -> None:
        if self.delivery._saving is not None:
            self.delivery._saving.cancel()
            self.delivery._saving = None

    def close(self) -> None:
        self.forget_timer()
        self.store.close()

    def send(self, body: bytes, wait_ms: int, **fields) -> str:
        """Its unique key."""
        key = f"key-{body.decode()}"
        self.put(body, {"UNIQ_KEY": key, "TIMER_DELIVER_MS": str(self.clock() + wait_ms)}, **fields)
        return key

    def recall(self, key: str, slot: int) -> None:
        self.put(b"0", {"UNIQ_KEY": key, "TIMER_DEL_UNIQKEY": key, "TIMER_DELIVER_MS": str(slot + 1)})

    def put(self, body: bytes, wishes: dict[str, str], **fields) -> bool:
        message = draft(body, **fields)
        properties = decode_properties(message.properties_text) | wishes
        waits = enter_timer(message, properties, self.clock(), MAX_DELAY_S)
        self.store.append(message)
        return waits

    def deliver(self) -> int:
        """One step, of what falls due first."""
        entries = self.delivery.agenda()
        return self.delivery.carry_out(entries[0].key, self.clock()).count if entries else 0


@pytest.fixture
async def timers(tmp_path):
    timers = Timers(tmp_path / "store")
    yield timers
    timers.close()


@pytest.fixture
def small_runs(monkeypatch):
    monkeypatch.setattr(timer_runs, "PENDING_MAX", 4)
    monkeypatch.setattr(timer_index, "PENDING_MAX", 4)


async def test_timer_waits_in_the_queue_of_the_timers(timers):
    timers.send(b"one", 5_000)

    assert bodies(timers.store) == []
    assert timers.store.queue_entry(TIMER_TOPIC, 0, 0)[2] == START_MS + 5_000


async def test_timer_is_never_early_and_comes_at_its_millisecond(timers):
    timers.send(b"one", 1_234)

    timers.clock.now_ms += 1_233
    assert timers.deliver() == 0
    timers.clock.now_ms += 1
    assert timers.deliver() == 1
    assert bodies(timers.store) == [b"one"]


async def test_timer_is_not_early_for_a_driver_whose_clock_is_ahead(timers):
    timers.send(b"one", 1_000)

    (entry,) = timers.delivery.agenda()
    assert timers.delivery.carry_out(entry.key, START_MS + 9_000).count == 0


async def test_timer_comes_in_the_order_of_due_times_and_once(timers):
    for body, wait_ms in ((b"c", 300), (b"a", 100), (b"b", 200), (b"d", 300)):
        timers.send(body, wait_ms)
    timers.clock.now_ms += 300

    assert [timers.deliver(), timers.deliver()] == [4, 0]
    assert bodies(timers.store) == [b"a", b"b", b"c", b"d"]


async def test_timer_delivers_what_was_sent_with_its_own_tags_keys_and_times(timers):
    timers.send(b"one", 5_500, queue_id=2, tags="paid", keys="k1", flag=7, reconsume_times=4)
    timers.clock.now_ms += 5_500
    timers.deliver()

    (message,) = read_queue(timers.store, "orders", 2)
    assert (message.tags, message.keys, message.flag, message.reconsume_times) == ("paid", ["k1"], 7, 4)
    assert (message.born_timestamp_ms, message.store_timestamp_ms) == (START_MS, START_MS + 5_500)
    assert message.properties == {
        "TAGS": "paid",
        "KEYS": "k1",
        "UNIQ_KEY": "key-one",
        "TIMER_DELIVER_MS": str(START_MS + 5_500),
        "TIMER_OUT_MS": str(SLOT + 5_000),
        "REAL_TOPIC": "orders",
        "REAL_QID": "2",
        "TIMER_ENQUEUE_MS": str(SLOT),
        "TIMER_DEQUEUE_MS": str(START_MS + 5_500),
    }
    assert timers.store.queue_entry("orders", 2, 0)[2] == tags_code("paid")


async def test_timer_delivers_a_bounded_number_per_step(timers, monkeypatch):
    monkeypatch.setattr(timer_module, "STEP_MESSAGES_MAX", 2)
    for number in range(3):
        timers.send(b"%d" % number, 10)
    timers.clock.now_ms += 10

    assert [timers.deliver(), timers.deliver(), timers.deliver()] == [2, 1, 0]


async def test_timer_agenda_names_the_minute_the_due_time_and_how_many_wait(timers):
    assert timers.delivery.agenda() == []
    timers.send(b"later", 90_000)
    timers.send(b"first", 61_000)

    (entry,) = timers.delivery.agenda()
    due_ms = START_MS + 61_000
    assert (entry.kind, entry.key) == ("timer", str(due_ms - due_ms % 60_000))
    assert (entry.next_due_ms, entry.waiting_count, entry.late_ms) == (due_ms, 2, -1)
    timers.clock.now_ms += 61_020
    timers.deliver()
    assert timers.delivery.agenda()[0].late_ms == 20


async def test_timer_tells_when_something_falls_due_before_all_else(timers):
    timers.send(b"1", 1_000)
    timers.send(b"2", 2_000)
    timers.send(b"3", 500)

    assert timers.sooner_count == 2


@pytest.mark.parametrize("key", ["3", "", "now", "60001"])
async def test_timer_knows_no_range_that_is_no_minute(timers, key):
    with pytest.raises(KeyError):
        timers.delivery.carry_out(key, START_MS)


async def test_timer_of_the_past_or_of_now_does_not_wait(timers):
    assert not timers.put(b"one", {"TIMER_DELAY_MS": "0"})
    assert not timers.put(b"two", {"TIMER_DELIVER_MS": "1"})
    assert bodies(timers.store) == [b"one", b"two"]


@pytest.mark.parametrize(
    "wishes",
    [
        {"TIMER_DELAY_SEC": str(MAX_DELAY_S + 1)},
        {"TIMER_DELAY_MS": "soon"},
        {"TIMER_DELIVER_MS": str(START_MS), "TIMER_DEL_UNIQKEY": "k"},
    ],
    ids=["too far away", "no number", "a delete marker of the past"],
)
async def test_timer_is_refused(timers, wishes):
    with pytest.raises(MessageError, match=r"timer message illegal.* max delay 259200000ms"):
        timers.put(b"one", wishes)


async def test_timer_as_far_away_as_is_allowed_waits(timers):
    assert timers.put(b"one", {"TIMER_DELAY_SEC": str(MAX_DELAY_S)})


# kills


@pytest.mark.parametrize("is_saved", [True, False], ids=["after a save", "before a save"])
async def test_timer_is_not_repeated_and_not_lost_over_a_kill(timers, is_saved):
    for number in range(3):
        timers.send(b"%d" % number, 100 * (number + 1))
    timers.clock.now_ms += 200
    assert timers.deliver() == 2
    if is_saved:
        timers.delivery._save()
        timers.delivery._save()
    timers.restart_after_kill()
    timers.clock.now_ms += 100

    assert timers.delivery.waiting_count == 1
    assert [timers.deliver(), timers.deliver()] == [1, 0]
    assert bodies(timers.store) == [b"0", b"1", b"2"]


async def test_timer_that_fell_due_while_the_broker_was_down_comes_once_on_return(timers):
    timers.send(b"one", 1_000)
    timers.restart_after_kill()
    timers.clock.now_ms += 3_600_000

    assert [timers.deliver(), timers.deliver()] == [1, 0]


async def test_timer_progress_counts_no_copy_that_the_disk_does_not_have(timers, monkeypatch):
    timers.send(b"one", 10)
    timers.clock.now_ms += 10
    timers.deliver()
    monkeypatch.setattr(type(timers.store), "flushed_commit_log_offset", property(lambda _: 0))
    for _ in range(3):
        timers.delivery._save()

    assert not (timers.folder / "timer" / "progress").exists()


async def test_timer_is_put_back_when_the_disk_is_full(timers, monkeypatch):
    timers.send(b"one", 10)
    timers.clock.now_ms += 10
    with monkeypatch.context() as patch:
        patch.setattr(timers.store, "append_batch", _refuse)
        with pytest.raises(StoreFull):
            timers.deliver()

    assert timers.deliver() == 1


def _refuse(_):
    raise StoreFull("full")


async def test_timer_does_not_believe_a_message_that_only_looks_like_its_copy(timers):
    timers.send(b"one", 10)
    (source,) = read_queue(timers.store, TIMER_TOPIC)
    timers.store.append(draft(b"other", properties_text=source.properties_text, prepared_transaction_offset=1))
    timers.restart_after_kill()
    timers.clock.now_ms += 10

    assert timers.deliver() == 1


# the clock


async def test_timer_waits_again_when_the_clock_is_set_back(timers):
    timers.send(b"one", 1_000)
    timers.clock.now_ms -= 5_000
    timers.send(b"two", 1_000)
    timers.clock.now_ms += 1_000

    assert [timers.deliver(), timers.deliver()] == [1, 0]
    timers.clock.now_ms += 5_000
    assert timers.deliver() == 1
    assert bodies(timers.store) == [b"two", b"one"]


# delete markers


async def test_timer_that_was_recalled_never_comes(timers):
    key = timers.send(b"one", 5_500)
    timers.send(b"two", 5_600)
    timers.recall(key, SLOT + 5_000)
    timers.clock.now_ms += 60_000

    assert timers.deliver() == 1
    timers.deliver()
    assert bodies(timers.store) == [b"two"]
    assert timers.delivery.waiting_count == 0


@pytest.mark.parametrize("when_ms", [0, 5_001, 5_500, 7_000])
async def test_timer_that_was_recalled_never_comes_over_a_kill(timers, when_ms):
    key = timers.send(b"one", 5_500)
    timers.recall(key, SLOT + 5_000)
    timers.clock.now_ms = SLOT + when_ms
    timers.deliver()
    timers.delivery._save()
    timers.delivery._save()
    timers.restart_after_kill()
    timers.clock.now_ms = SLOT + 9_000
    timers.deliver()
    timers.restart_after_kill()
    timers.deliver()

    assert bodies(timers.store) == []


async def test_timer_marker_that_names_nothing_goes_by_itself(timers):
    timers.recall("nobody", SLOT + 5_000)
    timers.clock.now_ms += 10_000
    timers.deliver()
    timers.delivery._save()

    assert timers.delivery.waiting_count == 0
    assert timers.delivery.pinned() is None
    assert bodies(timers.store) == []


async def test_timer_marker_takes_only_what_is_in_its_own_second(timers):
    key = timers.send(b"one", 5_500)
    timers.recall(key, SLOT + 6_000)
    timers.clock.now_ms += 10_000

    assert timers.deliver() == 1


# the index


async def test_timer_order_is_kept_on_the_disk_and_taken_up_again(timers, small_runs):
    for number in range(10):
        timers.send(b"%d" % number, 1_000 - 100 * number)
    assert len(list((timers.folder / "timer").glob("*.run"))) == 2
    timers.restart_after_kill()
    assert timers.delivery.waiting_count == 10
    timers.clock.now_ms += 1_000

    assert timers.deliver() == 10
    assert bodies(timers.store) == [b"%d" % number for number in reversed(range(10))]
    assert list((timers.folder / "timer").glob("*.run")) == []


@pytest.mark.parametrize("is_running", [True, False], ids=["while it runs", "before a start"])
@pytest.mark.parametrize("byte", [0, 9, 40, 60, -1])
async def test_timer_index_with_a_wrong_bit_is_made_again(timers, small_runs, caplog, is_running, byte):
    for number in range(8):
        timers.send(b"%d" % number, 1_000 - 100 * number)
    for path in (timers.folder / "timer").glob("*.run"):
        data = bytearray(path.read_bytes())
        data[byte] ^= 4
        path.write_bytes(data)
    if not is_running:
        timers.restart_after_kill()
    timers.clock.now_ms += 1_000

    while timers.deliver():
        pass
    assert bodies(timers.store) == [b"%d" % number for number in reversed(range(8))]


async def test_timer_index_that_is_gone_is_made_again(timers, small_runs):
    for number in range(9):
        timers.send(b"%d" % number, 100)
    timers.clock.now_ms += 100
    timers.deliver()
    timers.send(b"last", 100)
    timers.forget_timer()
    abandon(timers.store)
    for path in (timers.folder / "timer").iterdir():
        path.unlink()
    timers._start()

    assert timers.delivery.waiting_count == 1
    timers.clock.now_ms += 100
    assert timers.deliver() == 1


async def test_timer_stays_in_memory_when_the_disk_takes_no_index(timers, small_runs, monkeypatch, caplog):
    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(timer_runs.Path, "write_bytes", refuse)
    with caplog.at_level(logging.ERROR):
        for number in range(6):
            timers.send(b"%d" % number, 100)
    monkeypatch.undo()
    timers.clock.now_ms += 100

    assert timers.deliver() == 6
    assert "timers stay in memory" in caplog.text


async def test_timer_pins_the_oldest_message_that_waits(timers):
    assert timers.delivery.pinned() is None
    timers.send(b"slow", 100)
    timers.send(b"fast", 10)
    timers.clock.now_ms += 10
    timers.deliver()

    assert timers.delivery.pinned() == timers.store.queue_entry(TIMER_TOPIC, 0, 0)[0]
