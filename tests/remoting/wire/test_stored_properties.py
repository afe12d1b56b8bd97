"""The properties of a record, read around its body."""

from __future__ import annotations

import pytest

from remoting.wire.errors import BodyError
from remoting.wire.properties import Property, decode_properties
from remoting.wire.stored_message import StoredMessage, decode_message, encode_message
from remoting.wire.stored_properties import START_BYTES_MAX, properties_in_tail, tail_position


def record(
    topic: str = "orders", host: str = "127.0.0.1", store_host: str = "127.0.0.1", text: str = "a\x015\x02"
) -> bytes:
    message = StoredMessage(
        topic=topic,
        queue_id=1,
        body=b"x" * 300,
        born_host=(host, 1),
        store_host=(store_host, 2),
        properties_text=text,
    )
    return encode_message(message)


@pytest.mark.parametrize("topic", ["orders", "%RETRY%" + "o" * 140], ids=["short topic", "long topic"])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"], ids=["born at IPv4", "born at IPv6"])
@pytest.mark.parametrize("store_host", ["127.0.0.1", "::1"], ids=["stored at IPv4", "stored at IPv6"])
@pytest.mark.parametrize(
    "text", ["", "a\x015\x02b\x01\u00e9\x02", "a\x015\x02__CRC32#\x01123\x02"], ids=["none", "two", "CRC"]
)
def test_properties_are_those_of_the_whole_message(topic: str, host: str, store_host: str, text: str) -> None:
    whole = record(topic, host, store_host, text)
    start = whole[:START_BYTES_MAX]
    tail_at = tail_position(start)

    for stored in (properties_in_tail(start, whole[tail_at:]), properties_in_tail(whole, whole, tail_at)):
        properties = decode_properties(stored.decode())
        properties.pop(Property.CRC32, None)
        assert properties == decode_message(whole).properties


@pytest.mark.parametrize("topic", ["orders", "%RETRY%" + "o" * 140], ids=["short topic", "long topic"])
def test_a_record_that_is_cut_off_anywhere_is_refused(topic: str) -> None:
    whole = record(topic)
    tail_at = tail_position(whole)
    head_bytes = tail_at - 300
    for end in range(head_bytes):
        with pytest.raises(BodyError, match="cut off"):
            tail_position(whole[:end])
    for end in range(tail_at, len(whole)):
        with pytest.raises(BodyError, match="cut off"):
            properties_in_tail(whole, whole[:end], tail_at)


def test_a_body_of_negative_length_is_refused() -> None:
    whole = bytearray(record())
    length_at = tail_position(bytes(whole)) - 300 - 4
    whole[length_at] = 0xFF
    with pytest.raises(BodyError, match="body of -"):
        tail_position(bytes(whole))
