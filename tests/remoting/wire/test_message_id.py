from __future__ import annotations

import os
from datetime import datetime

import pytest

from remoting.wire.errors import BodyError
from remoting.wire.message_id import (
    UniqueKeyFactory,
    decode_offset_message_id,
    host_bytes,
    host_from_bytes,
    offset_message_id,
)
from tests.support.forked import exit_code_of


@pytest.mark.parametrize(
    ("host", "offset", "text"),
    [
        pytest.param(("10.0.0.1", 10911), 1000, "0A00000100002A9F00000000000003E8", id="ipv4"),
        pytest.param(("::1", 10911), 5, "0" * 31 + "1" + "00002A9F" + "0000000000000005", id="ipv6"),
    ],
)
def test_offset_message_id_both_ways(host: tuple[str, int], offset: int, text: str) -> None:
    assert offset_message_id(host, offset) == text
    assert decode_offset_message_id(text) == (host, offset)
    assert decode_offset_message_id(text.lower()) == (host, offset)


@pytest.mark.parametrize("text", ["", "0A", "Z" * 32, "0" * 33, "0" * 30 + " 1", "0" * 56 + "00"])
def test_decode_offset_message_id_refuses(text: str) -> None:
    with pytest.raises(BodyError, match="not an offset message id"):
        decode_offset_message_id(text)


def test_hosts_are_eight_or_twenty_bytes() -> None:
    assert host_from_bytes(host_bytes(("1.2.3.4", 5678))) == ("1.2.3.4", 5678)
    assert host_from_bytes(host_bytes(("fe80::1%eth0", 1))) == ("fe80::1", 1)
    assert host_bytes(("::ffff:1.2.3.4", 9)) == host_bytes(("1.2.3.4", 9))


@pytest.mark.parametrize("host", [("localhost", 1), ("", 1), ("1.2.3.4", 1 << 40)])
def test_host_bytes_refuses_what_is_no_address(host: tuple[str, int]) -> None:
    with pytest.raises(BodyError, match="not an address"):
        host_bytes(host)


def test_unique_keys_carry_address_pid_and_time_of_the_month() -> None:
    start = datetime(2026, 2, 1).timestamp() * 1000
    key = UniqueKeyFactory("10.1.2.3", clock=lambda: int(start) + 255).next()
    assert key == key.upper()
    assert len(key) == 32
    assert key[:8] == "0A010203"
    assert key[8:12] == f"{os.getpid() & 0xFFFF:04X}"
    assert key[20:28] == "000000FF"


def test_unique_keys_start_the_month_again() -> None:
    end_of_december = int(datetime(2026, 1, 1).timestamp() * 1000) - 1
    times = iter([end_of_december, end_of_december + 1])
    factory = UniqueKeyFactory(clock=lambda: next(times))
    assert int(factory.next()[20:28], 16) == 31 * 86_400_000 - 1
    assert int(factory.next()[20:28], 16) == 0


def test_unique_keys_do_not_repeat_within_a_millisecond() -> None:
    factory = UniqueKeyFactory(clock=lambda: 1_700_000_000_000)
    assert len({factory.next() for _ in range(65_536)}) == 65_536


def test_unique_keys_differ_after_a_fork() -> None:
    factory = UniqueKeyFactory(clock=lambda: 1_700_000_000_000)
    before = factory.next()
    read_end, write_end = os.pipe()
    assert exit_code_of(lambda: os.write(write_end, factory.next().encode())) == 0
    theirs = os.read(read_end, 100).decode()
    os.close(read_end)
    os.close(write_end)
    assert theirs[:20] != before[:20]
