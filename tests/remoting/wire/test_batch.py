from __future__ import annotations

import pytest

from remoting.wire.batch import BatchEntry, decode_batch, encode_batch
from remoting.wire.errors import BodyError
from remoting.wire.limits import BATCH_MESSAGES_MAX

GOLDEN = bytes.fromhex(
    "0000002900000000000000000000000000000005 68656C6C6F 000E 6B01760257414954017472756502".replace(" ", "")
)


def test_encode_batch_writes_the_golden_bytes() -> None:
    assert encode_batch([(0, b"hello", {"k": "v", "WAIT": "true"})]) == GOLDEN


def test_decode_batch_reads_entries_one_after_the_other() -> None:
    body = GOLDEN + encode_batch([(7, b"", {})])
    assert decode_batch(body) == [BatchEntry(0, b"hello", "k\x01v\x02WAIT\x01true\x02"), BatchEntry(7, b"", "")]


def test_decode_batch_of_nothing_is_empty() -> None:
    assert decode_batch(b"") == []


@pytest.mark.parametrize("cut", range(1, len(GOLDEN)))
def test_decode_batch_refuses_a_cut_body(cut: int) -> None:
    with pytest.raises(BodyError):
        decode_batch(GOLDEN[:cut])


@pytest.mark.parametrize("position", [0, 3, 16, 19, 25], ids=["total-high", "total", "body-high", "body", "props"])
def test_decode_batch_refuses_lengths_that_lie(position: int) -> None:
    broken = bytearray(GOLDEN)
    broken[position] ^= 0x81
    with pytest.raises(BodyError):
        decode_batch(broken)


def test_encode_batch_refuses_properties_that_the_layout_cannot_hold() -> None:
    with pytest.raises(BodyError, match="at most 32767"):
        encode_batch([(0, b"x", {"k": "v" * 32768})])


def test_decode_batch_refuses_more_messages_than_one_request_should_cost() -> None:
    assert len(decode_batch(encode_batch([(0, b"x", {})] * BATCH_MESSAGES_MAX))) == BATCH_MESSAGES_MAX
    with pytest.raises(BodyError, match="may hold 10000 messages: send several smaller ones"):
        decode_batch(encode_batch([(0, b"x", {})] * (BATCH_MESSAGES_MAX + 1)))
