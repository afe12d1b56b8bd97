"""Delayed messages over the end of a broker's life: none is lost, and none comes twice."""

from __future__ import annotations

from broker.engine.schedule import delay as delay_module
from broker.engine.schedule.progress import DelayProgress, decode_progress
from tests.support.delay_schedule import LEVEL, WAIT_MS
from tests.support.stores import START_MS, bodies, draft


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
