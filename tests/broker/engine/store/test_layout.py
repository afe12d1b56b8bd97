"""The bytes of records, held against Apache's own where it writes `__CRC32#` too."""

from __future__ import annotations

import json
from pathlib import Path
from zlib import crc32

import pytest

from broker.engine.store.errors import RecordRefused
from broker.engine.store.layout import (
    CRC_BYTES,
    crc_property,
    is_blank,
    pack_record,
    read_record_fields,
    record_bytes,
    sound_record_bytes,
    store_timestamp,
    stored_properties,
)
from broker.engine.store.values import MessageDraft
from remoting.wire.stored_message import StoredMessage, decode_message, encode_topic
from tests.support.stores import draft

GOLDEN = Path(__file__).parents[3] / "golden" / "stored_messages.json"
APACHES_WITH_CRC = [
    bytes.fromhex(case["record"]) for case in json.loads(GOLDEN.read_bytes()) if b"__CRC32#".hex() in case["record"]
]


def packed(one: MessageDraft, queue_offset: int = 7, commit_log_offset: int = 1000, time_ms: int = 5) -> bytes:
    magic, topic_part = encode_topic(one.topic)
    properties = stored_properties(one.properties_text)
    return pack_record(
        one,
        magic,
        topic_part,
        properties,
        total_bytes=record_bytes(one, topic_part, properties),
        queue_offset=queue_offset,
        commit_log_offset=commit_log_offset,
        store_timestamp_ms=time_ms,
    )


def as_draft(message: StoredMessage) -> MessageDraft:
    names = ("topic", "queue_id", "flag", "sys_flag", "born_timestamp_ms", "born_host", "store_host")
    names += ("reconsume_times", "prepared_transaction_offset", "body", "properties_text")
    return MessageDraft(**{name: getattr(message, name) for name in names})


@pytest.mark.parametrize("record", APACHES_WITH_CRC, ids=range(len(APACHES_WITH_CRC)))
def test_a_record_of_apache_comes_out_the_same_byte_for_byte(record: bytes) -> None:
    theirs = decode_message(record)
    ours = packed(as_draft(theirs), theirs.queue_offset, theirs.commit_log_offset, theirs.store_timestamp_ms)
    assert ours == record
    assert sound_record_bytes(memoryview(record), 0, theirs.commit_log_offset) == len(record)


def test_there_are_records_of_apache_with_a_crc() -> None:
    assert len(APACHES_WITH_CRC) > 3


def test_the_crc_is_written_with_its_last_digit_first() -> None:
    value = crc32(b"abc") & 0x7FFFFFFF
    assert crc_property(b"abc") == b"__CRC32#\x01" + f"{value:010d}"[::-1].encode() + b"\x02"
    assert len(crc_property(b"")) == CRC_BYTES == 20


@pytest.mark.parametrize("born", ["1.2.3.4", "2001:db8::1"])
@pytest.mark.parametrize("store", ["10.0.0.1", "fe80::2"])
@pytest.mark.parametrize("topic", ["T", "%RETRY%" + "g" * 200])
def test_a_packed_record_reads_back(born: str, store: str, topic: str) -> None:
    one = draft(b"body", topic, 3, tags="paid", keys="a b", born_host=(born, 1), store_host=(store, 2), sys_flag=0x33)
    record = packed(one)
    message = decode_message(record)
    assert (message.topic, message.queue_id, message.queue_offset) == (topic, 3, 7)
    assert (message.born_host, message.store_host) == ((born, 1), (store, 2))
    assert (message.tags, message.keys, message.body) == ("paid", ["a", "b"], b"body")
    assert message.total_bytes == len(record)
    fields = read_record_fields(memoryview(record), 0)
    assert (fields.topic, fields.queue_id, fields.queue_offset, fields.total_bytes) == (topic, 3, 7, len(record))
    assert fields.store_timestamp_ms == store_timestamp(memoryview(record), 0) == 5
    assert fields.properties_text == message.properties_text


def test_every_flipped_bit_is_found() -> None:
    record = packed(draft(b"some body", tags="paid"))
    assert sound_record_bytes(memoryview(record), 0, 1000) == len(record)
    for bit in range(8 * len(record)):
        broken = bytearray(record)
        broken[bit // 8] ^= 1 << bit % 8
        assert not sound_record_bytes(memoryview(broken), 0, 1000), f"bit {bit}"


def test_a_record_elsewhere_than_it_says_is_not_believed() -> None:
    assert not sound_record_bytes(memoryview(packed(draft())), 0, 999)


def test_a_cut_record_is_not_believed() -> None:
    record = packed(draft())
    for cut in range(len(record)):
        assert not sound_record_bytes(memoryview(record[:cut]), 0, 1000)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        pytest.param("", b"", id="none"),
        pytest.param("a\x01b", b"a\x01b\x02", id="separator-added"),
        pytest.param("a\x01b\x02", b"a\x01b\x02", id="separator-kept"),
        pytest.param("a\x01b\x02__CRC32#\x010123456789\x02", b"a\x01b\x02", id="old-crc-dropped"),
        pytest.param("__CRC32#\x010123456789", b"", id="old-crc-alone"),
        pytest.param("__CRC32#\x011\x02a\x01b\x02", b"a\x01b\x02", id="old-crc-first"),
        pytest.param("a\x01x__CRC32#\x011\x02", b"a\x01x__CRC32#\x011\x02", id="crc-within-a-value-stays"),
    ],
)
def test_properties_are_stored_so_that_the_crc_can_follow(text: str, stored: bytes) -> None:
    assert stored_properties(text) == stored


def test_properties_that_leave_no_room_for_the_crc_are_refused() -> None:
    stored_properties("k\x01" + "v" * (32767 - 20 - 3))
    with pytest.raises(RecordRefused, match="at most 32747"):
        stored_properties("k\x01" + "v" * (32767 - 20 - 2))


@pytest.mark.parametrize("field", [{"flag": 1 << 31}, {"born_timestamp_ms": 1 << 63}, {"queue_id": 1 << 31}])
def test_numbers_that_do_not_fit_are_refused(field: dict[str, int]) -> None:
    with pytest.raises(RecordRefused, match="does not fit the record"):
        packed(draft(**field))


def test_a_host_that_is_no_address_is_refused() -> None:
    with pytest.raises(RecordRefused, match="not an address"):
        packed(draft(born_host=("somewhere", 1)))


def test_a_segment_is_closed_by_a_blank_that_fits() -> None:
    view = memoryview(bytes.fromhex("00000010CBD43194") + bytes(8))
    assert is_blank(view, 0)
    assert not is_blank(view[:12], 0)
    assert is_blank(view, 12)
