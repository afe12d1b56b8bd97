"""Checks of transactions on a real store: who is asked, when and how often."""

from __future__ import annotations

import pytest

from broker.engine.store.errors import RecordRefused, StoreFull
from broker.engine.transactions import check_back as check_back_module
from remoting.wire.codes import RequestCode
from remoting.wire.errors import MessageError
from remoting.wire.names import CHECK_MAX_TIME_TOPIC, HALF_TOPIC
from remoting.wire.stored_message import decode_message
from tests.support.logged import lines_of
from tests.support.stores import bodies, read_queue
from tests.support.transaction_broker import INTERVAL_MS, KEPT_MS, TIMEOUT_MS, TIMES_MAX


def _full(drafts):
    raise StoreFull("no space; free some")


async def test_a_half_is_left_alone_for_its_timeout_then_asked_for_at_every_interval(broker):
    producer = broker.online()
    broker.send()

    assert broker.transactions.checks.next_due_ms == broker.clock() + TIMEOUT_MS
    assert broker.check(TIMEOUT_MS - 1) == 0
    assert broker.check(1) == 1
    assert broker.check(INTERVAL_MS - 1) == 0
    assert broker.check(1) == 1
    assert len(producer.sent) == 2


async def test_a_check_names_the_new_version_and_shows_the_message_as_it_will_be(broker):
    producer = broker.online()
    sent = broker.send(b"body", queue_id=3)
    broker.check(TIMEOUT_MS)

    (command,) = producer.sent
    (_, version) = read_queue(broker.store, HALF_TOPIC)
    assert command.code == RequestCode.CHECK_TRANSACTION_STATE
    assert command.ext_fields == {
        "topic": HALF_TOPIC,
        "tranStateTableOffset": "1",
        "commitLogOffset": str(version.commit_log_offset),
        "msgId": "u1",
        "transactionId": "u1",
        "offsetMsgId": version.offset_message_id,
        "bname": "broker-a",
    }
    shown = decode_message(command.body)
    assert (shown.topic, shown.queue_id, shown.body) == ("orders", 3, b"body")
    assert (shown.queue_offset, shown.commit_log_offset) == (1, version.commit_log_offset)
    assert shown.properties["TRANSACTION_CHECK_TIMES"] == "1"
    assert shown.born_timestamp_ms == sent.born_timestamp_ms


async def test_what_a_check_finds_out_is_delivered_once(broker):
    broker.online()
    half = broker.send()
    broker.check(TIMEOUT_MS)
    (_, version) = read_queue(broker.store, HALF_TOPIC)

    assert broker.commit(version) is None
    with pytest.raises(LookupError):
        broker.commit(half)
    assert broker.delivered() == [b"one"]
    assert broker.check(INTERVAL_MS) == 0


async def test_a_late_commit_may_name_a_version_that_checks_have_replaced(broker):
    broker.online()
    half = broker.send()
    broker.check(TIMEOUT_MS)
    broker.check(INTERVAL_MS)

    assert broker.commit(half) is None
    (message,) = read_queue(broker.store)
    assert message.properties["TRANSACTION_CHECK_TIMES"] == "2"
    assert broker.check(INTERVAL_MS) == 0


async def test_the_producers_of_the_group_are_asked_in_turn(broker):
    producers = [broker.online(), broker.online()]
    stranger = broker.online("another group")
    for number in range(4):
        broker.send(b"%d" % number)
    broker.check(TIMEOUT_MS)

    assert [len(producer.sent) for producer in producers] == [2, 2]
    assert stranger.sent == []


async def test_a_producer_that_takes_no_bytes_is_passed_over(broker):
    stuck, gone, ready = broker.online(), broker.online(), broker.online()
    stuck.is_write_paused, gone.is_open = True, False
    for number in range(3):
        broker.send(b"%d" % number)
    broker.check(TIMEOUT_MS)

    assert (len(stuck.sent), len(ready.sent)) == (0, 3)


async def test_without_a_producer_a_half_waits_and_nothing_is_counted(broker):
    broker.send()
    for _ in range(TIMES_MAX + 5):
        assert broker.check(INTERVAL_MS) == 0

    assert bodies(broker.store, HALF_TOPIC) == [b"one"]
    producer = broker.online()
    broker.check(INTERVAL_MS)
    assert decode_message(producer.sent[0].body).properties["TRANSACTION_CHECK_TIMES"] == "1"


async def test_many_that_wait_for_a_producer_are_looked_at_less_often(broker, monkeypatch):
    monkeypatch.setattr(check_back_module, "IDLE_LOOKS_PER_S", 10)
    for number in range(100):
        broker.send(b"%d" % number)
    broker.check(TIMEOUT_MS)

    assert broker.transactions.checks.next_due_ms == broker.clock() + INTERVAL_MS + 10_000


async def test_a_half_may_ask_to_be_left_alone_for_longer(broker):
    broker.online()
    broker.send(CHECK_IMMUNITY_TIME_IN_SECONDS="60")

    assert broker.check(59_999) == 0
    assert broker.check(1) == 1


async def test_after_so_many_checks_it_is_given_up(broker):
    broker.online()
    half = broker.send()
    assert [broker.check(INTERVAL_MS) for _ in range(TIMES_MAX + 1)] == [1] * (TIMES_MAX + 1)

    assert broker.check(INTERVAL_MS) == 0
    assert bodies(broker.store, CHECK_MAX_TIME_TOPIC) == [b"one"]
    with pytest.raises(LookupError):
        broker.commit(half)
    assert broker.delivered() == []


async def test_what_is_older_than_messages_are_kept_is_given_up_also_without_a_producer(broker):
    broker.send()
    broker.check(KEPT_MS)
    assert bodies(broker.store, CHECK_MAX_TIME_TOPIC) == []

    broker.check(INTERVAL_MS)
    assert bodies(broker.store, CHECK_MAX_TIME_TOPIC) == [b"one"]


async def test_transactions_of_a_topic_that_are_given_up_are_logged_once_a_minute(broker, caplog):
    broker.online()
    for _ in range(20):
        broker.send(TRANSACTION_CHECK_TIMES="15")
    assert broker.check(TIMEOUT_MS) == 20
    (line,) = lines_of(caplog, "remoting")
    assert "is given up, its producers were asked 15 times" in line
    broker.clock.now_ms += 60_000
    broker.parts.complaints.report_left_out()
    assert lines_of(caplog, "remoting")[1:] == ["orders, given up: 19 more in 60 s were not logged"]


async def test_what_was_given_up_can_be_resumed_once(broker):
    producer = broker.online()
    broker.send(TRANSACTION_CHECK_TIMES="15")
    broker.check(TIMEOUT_MS)
    (record,) = read_queue(broker.store, CHECK_MAX_TIME_TOPIC)
    answers: list = []
    broker.transactions.resume(record, answers.append)
    broker.parts.accepting.store_submitted()
    with pytest.raises(MessageError, match="resumed before"):
        broker.transactions.resume(record, answers.append)

    assert len(answers) == 1
    assert broker.check(TIMEOUT_MS) == 1
    assert decode_message(producer.sent[0].body).properties["TRANSACTION_CHECK_TIMES"] == "1"
    assert broker.commit(read_queue(broker.store, HALF_TOPIC)[-1]) is None
    assert broker.delivered() == [b"one"]


async def test_only_what_was_given_up_can_be_resumed(broker):
    with pytest.raises(MessageError, match="was given up"):
        broker.transactions.resume(broker.send(), print)


async def test_the_check_of_a_full_disk_is_made_up_for(broker, monkeypatch):
    producer = broker.online()
    broker.send()
    with monkeypatch.context() as patch:
        patch.setattr(broker.store, "append_batch", _full)
        with pytest.raises(StoreFull):
            broker.check(TIMEOUT_MS)

    assert producer.sent == []
    assert broker.check(INTERVAL_MS) == 1


async def test_of_a_check_that_a_full_disk_cut_short_each_half_has_one_version(broker, monkeypatch):
    producer = broker.online()
    first, _ = broker.send(b"one"), broker.send(b"two")
    append, calls = broker.store.append_batch, []

    def refuses_all_then_is_full_after_one(drafts):
        calls.append(len(drafts))
        if len(drafts) > 1:
            raise RecordRefused("one of them can never be stored")
        return append(drafts) if len(calls) == 2 else _full(drafts)

    with monkeypatch.context() as patch:
        patch.setattr(broker.store, "append_batch", refuses_all_then_is_full_after_one)
        with pytest.raises(StoreFull):
            broker.check(TIMEOUT_MS)

    assert len(producer.sent) == 1
    assert broker.transactions.checks.waiting_count == 2
    broker.commit(first)
    assert broker.transactions.undecided_version(first) is None


async def test_a_clock_that_is_set_back_delays_no_check(broker):
    broker.online()
    broker.send()
    broker.clock.now_ms -= 86_400_000

    assert broker.check() == 0
    assert broker.check(TIMEOUT_MS) == 1


async def test_an_unknown_key_of_a_step_is_refused(broker):
    with pytest.raises(KeyError):
        broker.transactions.checks.carry_out("1", broker.clock())
