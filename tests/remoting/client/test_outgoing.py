from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from remoting.client.outgoing import (
    Message,
    check_batch_topic,
    check_send_topic,
    encode_checked,
    prepare_message,
)
from remoting.wire.compression import decompress
from remoting.wire.errors import MessageError
from remoting.wire.properties import RESERVED_PROPERTIES, decode_properties


def properties_of(message: Message) -> dict[str, str]:
    return decode_properties(prepare_message("T", message, "id-1").properties_text)


def test_tags_keys_properties_and_the_id_become_properties() -> None:
    message = Message(b"x", tags="a", keys=["k1", "k2"], properties={"who": "é", "__SHARDINGKEY": "7"}, flag=3)
    assert properties_of(message) == {
        "who": "é",
        "__SHARDINGKEY": "7",
        "UNIQ_KEY": "id-1",
        "TAGS": "a",
        "KEYS": "k1 k2",
    }
    assert prepare_message("T", message, "id-1").flag == 3


def test_a_delay_level_becomes_a_property() -> None:
    assert properties_of(Message(b"x", delay_level=5))["DELAY"] == "5"
    assert "DELAY" not in properties_of(Message(b"x", delay_level=0))
    with pytest.raises(MessageError, match="delay level -1 is negative"):
        properties_of(Message(b"x", delay_level=-1))


@pytest.mark.parametrize(
    ("message", "name", "value"),
    [
        (Message(b"x", delay_s=1.5), "TIMER_DELAY_MS", "1500"),
        (Message(b"x", delay_s=0), "TIMER_DELAY_MS", "0"),
        (Message(b"x", deliver_at=datetime(2030, 1, 1, tzinfo=UTC)), "TIMER_DELIVER_MS", "1893456000000"),
    ],
    ids=["in seconds", "at once", "at a moment"],
)
def test_a_time_of_delivery_becomes_a_property(message: Message, name: str, value: str) -> None:
    assert properties_of(message) == {"UNIQ_KEY": "id-1", name: value}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"delay_s": -0.1}, "delay_s is -0.1"),
        ({"delay_s": float("nan")}, "delay_s is nan"),
        ({"delay_s": float("inf")}, "delay_s is inf"),
        ({"deliver_at": datetime(2030, 1, 1)}, "no time zone"),
        ({"delay_s": 1, "delay_level": 1}, "exclude each other"),
        ({"delay_s": 1, "deliver_at": datetime(2030, 1, 1, tzinfo=UTC)}, "exclude each other"),
    ],
    ids=["negative", "not a number", "endless", "naive", "delay and level", "delay and moment"],
)
def test_a_time_of_delivery_that_says_nothing_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        properties_of(Message(b"x", **options))


def test_a_single_key_may_be_given_as_it_is() -> None:
    assert properties_of(Message(b"x", keys="k1"))["KEYS"] == "k1"


def test_a_body_of_4096_bytes_is_compressed_and_a_shorter_one_is_not() -> None:
    short, long = prepare_message("T", Message(b"x" * 4095), "i"), prepare_message("T", Message(b"x" * 4096), "i")
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
        prepare_message("T", message, "id-1")


def test_the_largest_body_and_the_longest_properties_pass() -> None:
    prepare_message("T", Message(bytes(4 * 1024 * 1024)), "i")
    room = 32_767 - len(encode_checked({"a": "", "UNIQ_KEY": "i"}))
    prepare_message("T", Message(b"x", properties={"a": "x" * room}), "i")
    with pytest.raises(MessageError):
        prepare_message("T", Message(b"x", properties={"a": "x" * (room + 1)}), "i")


def test_properties_are_measured_in_bytes_not_characters() -> None:
    with pytest.raises(MessageError, match="together; at most 32767"):
        prepare_message("T", Message(b"x", properties={"a": "键" * 11_000}), "i")


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
