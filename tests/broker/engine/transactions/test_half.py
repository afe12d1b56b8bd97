"""A half message and what follows on it, as pure functions."""

from __future__ import annotations

import pytest

from broker.engine.transactions.half import (
    CHECK_TIMES_CHARS,
    check_times,
    committed_copy,
    destination,
    ended_offsets,
    enter_half_topic,
    follows_on,
    given_up,
    immunity_ms,
    is_half,
    is_successor,
    next_version,
    op_message,
)
from remoting.wire.names import CHECK_MAX_TIME_TOPIC, HALF_TOPIC, OP_HALF_TOPIC
from remoting.wire.properties import decode_properties, encode_properties
from remoting.wire.stored_message import StoredMessage
from remoting.wire.tags import tags_code
from tests.support.stores import draft

HOST = ("127.0.0.1", 10911)


def half(**properties: str) -> StoredMessage:
    values = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": "u1", "REAL_TOPIC": "orders", "REAL_QID": "3"}
    return StoredMessage(
        topic=HALF_TOPIC,
        queue_id=0,
        queue_offset=17,
        commit_log_offset=1_000,
        flag=9,
        sys_flag=1,
        reconsume_times=2,
        born_timestamp_ms=5,
        born_host=("10.0.0.1", 40_000),
        store_host=HOST,
        body=b"body",
        properties_text=encode_properties({**values, "TAGS": "paid", **properties}),
    )


@pytest.mark.parametrize(
    ("properties", "reconsume_times", "expected"),
    [
        ({}, 0, False),
        ({"TRAN_MSG": "false"}, 0, False),
        ({"TRAN_MSG": "true"}, 0, True),
        ({"TRAN_MSG": "TRUE"}, 0, True),
        ({"TRAN_MSG": "true", "DELAY": "3"}, 0, True),
        ({"TRAN_MSG": "true"}, 1, True),
        ({"TRAN_MSG": "true", "DELAY": "0"}, 1, True),
        ({"TRAN_MSG": "true", "DELAY": "3"}, 1, False),
    ],
    ids=["plain", "false", "true", "upper case", "delayed", "a retry", "level 0", "an old client's retry"],
)
def test_what_waits_for_its_transaction(properties, reconsume_times, expected):
    assert is_half(properties, reconsume_times) is expected


def test_a_half_keeps_its_destination_in_properties_and_loses_transaction_bits_and_delays():
    message = draft(b"one", "orders", 3, sys_flag=0x4 | 0x1)
    properties = {"UNIQ_KEY": "u1", "TAGS": "paid", "TRAN_MSG": "true", "DELAY": "3", "TIMER_DELAY_MS": "5"}
    enter_half_topic(message, properties)

    assert (message.topic, message.queue_id, message.sys_flag) == (HALF_TOPIC, 0, 0x1)
    assert message.tags_code == tags_code("paid")
    assert decode_properties(message.properties_text) == {
        "UNIQ_KEY": "u1",
        "TAGS": "paid",
        "TRAN_MSG": "true",
        "__transactionId__": "u1",
        "REAL_TOPIC": "orders",
        "REAL_QID": "3",
    }


@pytest.mark.parametrize(
    ("wish", "expected"), [(None, 6_000), ("10", 10_000), ("1", 6_000), ("-1", 6_000), ("soon", 6_000)]
)
def test_immunity_only_ever_grows(wish, expected):
    properties = {} if wish is None else {"CHECK_IMMUNITY_TIME_IN_SECONDS": wish}
    assert immunity_ms(properties, 6_000) == expected


def test_the_committed_copy_is_what_was_sent_and_names_its_half():
    copy = committed_copy(half(), "orders", 3)

    assert (copy.topic, copy.queue_id, copy.body, copy.flag, copy.reconsume_times) == ("orders", 3, b"body", 9, 2)
    assert copy.sys_flag == 0x8 | 0x1
    assert copy.prepared_transaction_offset == 1_000
    assert copy.tags_code == tags_code("paid")
    assert decode_properties(copy.properties_text) == {
        "TRAN_MSG": "true",
        "PGROUP": "p",
        "UNIQ_KEY": "u1",
        "TAGS": "paid",
    }
    assert (copy.born_timestamp_ms, copy.born_host, copy.store_host) == (5, ("10.0.0.1", 40_000), HOST)


def test_a_check_counts_on_and_names_the_version_before():
    first = next_version(half(), is_checked=True)
    second = next_version(half(TRANSACTION_CHECK_TIMES="1"), is_checked=True)

    assert decode_properties(first.properties_text)["TRANSACTION_CHECK_TIMES"] == "1"
    assert decode_properties(second.properties_text)["TRANSACTION_CHECK_TIMES"] == "2"
    assert (first.topic, first.queue_id, first.flag, first.prepared_transaction_offset) == (HALF_TOPIC, 0, 9, 1_001)
    assert len(first.properties_text) - len(half().properties_text) <= CHECK_TIMES_CHARS


def test_one_that_is_only_moved_on_counts_nothing():
    moved = next_version(half(), is_checked=False)
    assert moved.properties_text == half().properties_text


@pytest.mark.parametrize("text", ["", "many", "-1", "9" * 13], ids=["none", "a word", "negative", "huge"])
def test_garbage_counts_as_never_checked(text):
    assert check_times(half(TRANSACTION_CHECK_TIMES=text)) == 0


def test_what_is_given_up_is_kept_as_it_was():
    kept = given_up(half(TRANSACTION_CHECK_TIMES="15"))

    assert (kept.topic, kept.queue_id, kept.body) == (CHECK_MAX_TIME_TOPIC, 0, b"body")
    assert decode_properties(kept.properties_text)["REAL_TOPIC"] == "orders"


def test_an_op_message_names_half_offsets_as_rocketmq_does():
    record = op_message([17, 18], HOST, 5)
    assert (record.topic, record.queue_id, record.body) == (OP_HALF_TOPIC, 0, b"17,18,")
    assert decode_properties(record.properties_text)["TAGS"] == "d"

    stored = StoredMessage(topic=OP_HALF_TOPIC, queue_id=0, body=b"17,18,x,-1,", properties_text=record.properties_text)
    assert ended_offsets(stored) == [17, 18]


def test_an_op_message_of_another_tag_says_nothing():
    assert ended_offsets(StoredMessage(topic=OP_HALF_TOPIC, queue_id=0, body=b"17")) == []


@pytest.mark.parametrize(
    "message",
    [
        StoredMessage(topic="orders", queue_id=0, properties_text=half().properties_text),
        StoredMessage(topic=HALF_TOPIC, queue_id=0),
        half(REAL_QID="first"),
        half(REAL_QID="-1"),
    ],
    ids=["another topic", "no properties", "no number", "a negative queue"],
)
def test_what_names_no_destination_is_no_half(message):
    assert destination(message) is None


def _stored(message, **fields) -> StoredMessage:
    names = ("topic", "queue_id", "body", "sys_flag", "prepared_transaction_offset", "properties_text")
    return StoredMessage(**({name: getattr(message, name) for name in names} | fields))


@pytest.mark.parametrize("make", [lambda it: committed_copy(it, "orders", 3), given_up])
def test_what_follows_on_a_half_is_recognised(make):
    successor = _stored(make(half()))

    assert follows_on(successor.topic, successor.sys_flag, successor.prepared_transaction_offset) == 1_000
    assert is_successor(successor, half())


@pytest.mark.parametrize(
    "change",
    [
        {"body": b"other"},
        {"queue_id": 2},
        {"topic": "bills"},
        {"properties_text": encode_properties({"UNIQ_KEY": "u2", "TRAN_MSG": "true"})},
        {"properties_text": encode_properties({"UNIQ_KEY": "u1"})},
    ],
    ids=["another body", "another queue", "another topic", "another key", "a message with the flag of a commit"],
)
def test_what_only_looks_like_a_committed_copy_is_not_believed(change):
    assert not is_successor(_stored(committed_copy(half(), "orders", 3), **change), half())


@pytest.mark.parametrize(("topic", "sys_flag", "prepared"), [(HALF_TOPIC, 0, 0), ("orders", 0, 5), ("orders", 0x4, 5)])
def test_other_records_follow_on_nothing(topic, sys_flag, prepared):
    assert follows_on(topic, sys_flag, prepared) is None
