from __future__ import annotations

from typing import Any

import pytest

from remoting.client.outgoing import (
    RESERVED_PROPERTIES,
    Message,
    check_batch_topic,
    check_send_topic,
    checked_text,
    outgoing,
)
from remoting.wire.compression import decompress
from remoting.wire.errors import MessageError
from remoting.wire.properties import decode_properties


def properties_of(message: Message, delay_level: int = 0) -> dict[str, str]:
    return decode_properties(outgoing("T", message, "id-1", delay_level=delay_level).properties_text)


def test_tags_keys_properties_and_the_id_become_properties() -> None:
    message = Message(b"x", tags="a", keys=["k1", "k2"], properties={"who": "é", "__SHARDINGKEY": "7"}, flag=3)
    assert properties_of(message) == {
        "who": "é",
        "__SHARDINGKEY": "7",
        "UNIQ_KEY": "id-1",
        "TAGS": "a",
        "KEYS": "k1 k2",
    }
    assert outgoing("T", message, "id-1").flag == 3


def test_a_delay_level_becomes_a_property() -> None:
    assert properties_of(Message(b"x"), 5)["DELAY"] == "5"
    assert "DELAY" not in properties_of(Message(b"x"), 0)
    with pytest.raises(MessageError, match="delay level -1 is negative"):
        properties_of(Message(b"x"), -1)


def test_a_single_key_may_be_given_as_it_is() -> None:
    assert properties_of(Message(b"x", keys="k1"))["KEYS"] == "k1"


def test_a_body_of_4096_bytes_is_compressed_and_a_shorter_one_is_not() -> None:
    short, long = outgoing("T", Message(b"x" * 4095), "i"), outgoing("T", Message(b"x" * 4096), "i")
    assert (short.body, short.sys_flag) == (b"x" * 4095, 0)
    assert long.sys_flag == 0x301
    assert len(long.body) < 100
    assert decompress(long.body, long.sys_flag) == b"x" * 4096


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Message(b""), "the body is empty"),
        (Message(bytes(4 * 1024 * 1024 + 1)), "4194305 bytes; at most 4194304"),
        (Message("text"), "the body is str, not bytes: encode it first"),  # type: ignore[arg-type]
        (Message(b"x", properties={"UNIQ_KEY": "mine"}), "'UNIQ_KEY' is reserved"),
        (Message(b"x", properties={"": "v"}), "is blank"),
        (Message(b"x", properties={"a\x01b": "v"}), "holds 0x01"),
        (Message(b"x", properties={"a": ""}), "'a' is not a text, is blank"),
        (Message(b"x", properties={"a": "v\x02"}), "holds 0x01 or 0x02"),
        (Message(b"x", properties={"a": 5}), "'a' is not a text"),  # type: ignore[dict-item]
        (Message(b"x", tags="a\x02"), "'TAGS'"),
        (Message(b"x", keys="\x01"), "'KEYS'"),
        (Message(b"x", properties={"a": "\ud800"}), "no UTF-8 form"),
        (Message(b"x", properties={"a": "x" * 32_768}), "together; at most 32767"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_broker_would_refuse_or_drop_is_refused_before_sending(message: Message, reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        outgoing("T", message, "id-1")


def test_the_largest_body_and_the_longest_properties_pass() -> None:
    outgoing("T", Message(bytes(4 * 1024 * 1024)), "i")
    room = 32_767 - len(checked_text({"a": "", "UNIQ_KEY": "i"}))
    outgoing("T", Message(b"x", properties={"a": "x" * room}), "i")
    with pytest.raises(MessageError):
        outgoing("T", Message(b"x", properties={"a": "x" * (room + 1)}), "i")


def test_properties_are_measured_in_bytes_not_characters() -> None:
    with pytest.raises(MessageError, match="together; at most 32767"):
        outgoing("T", Message(b"x", properties={"a": "键" * 11_000}), "i")


@pytest.mark.parametrize("topic", ["", "a b", "x" * 128, "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC"])
def test_topics_that_cannot_be_sent_to_are_refused(topic: str) -> None:
    with pytest.raises(MessageError):
        check_send_topic(topic)


def test_a_retry_topic_takes_single_messages_but_no_batches() -> None:
    check_send_topic("%RETRY%g")
    with pytest.raises(MessageError, match="one by one"):
        check_batch_topic("%RETRY%g")


@pytest.mark.parametrize(
    "name", ["KEYS", "TAGS", "DELAY", "UNIQ_KEY", "RETRY_TOPIC", "TRAN_MSG", "__CRC32#", "MIN_OFFSET"]
)
def test_names_that_rocketmq_gives_a_meaning_are_reserved(name: str) -> None:
    assert name in RESERVED_PROPERTIES


def test_values_are_plain() -> None:
    values: Any = Message(b"x")
    with pytest.raises(AttributeError):
        values.body = b"y"
