from __future__ import annotations

import pytest

from remoting.wire.errors import BodyError
from remoting.wire.stored_message import (
    MAGIC_V2,
    StoredMessage,
    decode_message,
    decode_messages,
    encode_message,
)

GOLDEN = bytes.fromhex(
    "00000062DAA320A758932AAC0000000300000000000000000000000700000000000003E800000000"
    "0000018BCFE56800010203040000162E0000018BCFE568010A00000100002A9F000000000000000000000000"
    "00000002686901540004" + "61016202"
)
MESSAGE = StoredMessage(
    topic="T",
    queue_id=3,
    queue_offset=7,
    commit_log_offset=1000,
    born_timestamp_ms=1_700_000_000_000,
    born_host=("1.2.3.4", 5678),
    store_timestamp_ms=1_700_000_000_001,
    store_host=("10.0.0.1", 10911),
    body=b"hi",
    properties_text="a\x01b\x02",
    body_crc=0x58932AAC,
    total_bytes=98,
)


def test_encode_message_writes_the_golden_bytes() -> None:
    assert encode_message(MESSAGE) == GOLDEN


def test_decode_message_reads_the_golden_bytes() -> None:
    assert decode_message(GOLDEN) == MESSAGE


def test_a_message_knows_its_ids() -> None:
    assert MESSAGE.message_id == MESSAGE.offset_message_id == "0A00000100002A9F00000000000003E8"
    keyed = StoredMessage(topic="T", queue_id=0, properties_text="UNIQ_KEY\x01AB\x02KEYS\x01a  b\x02TAGS\x01paid")
    assert (keyed.message_id, keyed.keys, keyed.tags) == ("AB", ["a", "b"], "paid")


@pytest.mark.parametrize("born", ["1.2.3.4", "2001:db8::1"])
@pytest.mark.parametrize("store", ["10.0.0.1", "fe80::2"])
@pytest.mark.parametrize("topic", ["T", "t" * 127, "t" * 128, "%RETRY%" + "g" * 248, "主题"])
def test_every_shape_survives_the_round_trip(born: str, store: str, topic: str) -> None:
    message = StoredMessage(
        topic=topic,
        queue_id=1,
        flag=-5,
        sys_flag=0x301,
        born_host=(born, 1),
        store_host=(store, 2),
        body=b"\0" * 100,
        properties_text="名\x01值",
    )
    encoded = encode_message(message)
    decoded = decode_message(b"xx" + encoded, 2)
    assert (decoded.topic, decoded.born_host, decoded.store_host) == (topic, (born, 1), (store, 2))
    assert (decoded.body, decoded.properties, decoded.flag) == (message.body, {"名": "值"}, -5)
    assert decoded.total_bytes == len(encoded)
    assert decoded.sys_flag & 0x301 == 0x301
    is_long = len(topic.encode()) > 127
    assert (encoded[4:8] == MAGIC_V2.to_bytes(4, "big")) == is_long


def test_decode_messages_reads_a_pull_answer() -> None:
    assert decode_messages(memoryview(GOLDEN * 3)) == [MESSAGE] * 3
    assert decode_messages(b"") == []


def test_the_record_crc_is_no_property_of_the_message() -> None:
    message = StoredMessage(topic="T", queue_id=0, properties_text="a\x01b\x02__CRC32#\x010123456789\x02")
    assert message.properties == {"a": "b"}


def test_a_message_cut_anywhere_is_refused() -> None:
    for cut in range(len(GOLDEN)):
        with pytest.raises(BodyError):
            decode_message(GOLDEN[:cut])


@pytest.mark.parametrize(
    ("position", "what"),
    [(4, "magic"), (0, "total size"), (84, "body length"), (90, "topic length"), (92, "properties length")],
)
def test_a_message_that_lies_is_refused(position: int, what: str) -> None:
    broken = bytearray(GOLDEN)
    broken[position] ^= 0xF0
    with pytest.raises(BodyError):
        decode_message(broken)


@pytest.mark.parametrize("topic", ["", "t" * 40_000])
def test_a_topic_that_cannot_be_stored_is_refused(topic: str) -> None:
    with pytest.raises(BodyError, match="cannot be stored"):
        encode_message(StoredMessage(topic=topic, queue_id=0))
