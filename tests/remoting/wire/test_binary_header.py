from __future__ import annotations

import pytest

from remoting.wire import binary_header
from remoting.wire.codes import SerializeType
from remoting.wire.command import Command
from remoting.wire.errors import FrameError

# Code 34 of a Java client, version 479.
JAVA_HEADER = bytes.fromhex("0022 00 01DF 00000102 00000000 00000002 6869 00000008 0001 6B 00000001 76")
JAVA_COMMAND = Command(
    code=34,
    opaque=258,
    language=0,
    version=479,
    remark="hi",
    ext_fields={"k": "v"},
    serialize_type=SerializeType.ROCKETMQ,
)
_START = "0022 00 01DF 00000102 00000000 "


def test_javas_header_is_read() -> None:
    assert binary_header.decode(JAVA_HEADER) == JAVA_COMMAND


def test_javas_header_is_written_byte_for_byte() -> None:
    assert binary_header.encode(JAVA_COMMAND) == JAVA_HEADER


def test_the_shortest_header_has_21_bytes() -> None:
    shortest = bytes.fromhex(_START + "00000000 00000000")
    assert len(shortest) == 21
    command = binary_header.decode(shortest)
    assert (command.remark, command.ext_fields) == (None, {})


def test_the_last_of_two_equal_keys_wins() -> None:
    """Java's header encoder and its ACL hook may both write one."""
    twice = bytes.fromhex(_START + "00000000 00000010 0001 6B 00000001 76 0001 6B 00000001 77")
    assert binary_header.decode(twice).ext_fields == {"k": "w"}


def test_a_code_above_16_bits_is_cut_as_java_cuts_it() -> None:
    command = Command(code=200050, serialize_type=SerializeType.ROCKETMQ)
    assert binary_header.decode(binary_header.encode(command)).code == 3442


def test_a_header_cut_anywhere_is_refused() -> None:
    for length in range(len(JAVA_HEADER)):
        with pytest.raises(FrameError):
            binary_header.decode(JAVA_HEADER[:length])


@pytest.mark.parametrize(
    ("rest", "reason"),
    {
        "a remark longer than the header": ("00000009 6869 00000000", "exceeds the header"),
        "a negative remark": ("FFFFFFFF 00000000", "a text of -1 bytes"),
        "fields longer than the header": ("00000000 00000100", "extFields of 256 bytes"),
        "negative fields": ("00000000 FFFFFFFF", "extFields of -1 bytes"),
        "a key longer than the header": ("00000000 00000003 7FFF 6B", "a text of 32767 bytes"),
        "a negative value": ("00000000 00000007 0001 6B FFFFFFFF", "a text of -1 bytes"),
    }.values(),
    ids=lambda value: "",
)
def test_lengths_that_do_not_add_up_are_refused_with_the_number(rest: str, reason: str) -> None:
    with pytest.raises(FrameError, match=reason):
        binary_header.decode(bytes.fromhex(_START + rest))


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(FrameError, match="language number 14"):
        binary_header.decode(bytes.fromhex("0022 0E 01DF 00000102 00000000 00000000 00000000"))


@pytest.mark.parametrize(
    "command",
    [Command(code=1, ext_fields={"k" * 32768: "v"}), Command(code=1, opaque=2**31), Command(code=1, version=2**15)],
    ids=["a key over 32767 bytes", "an opaque over 32 bits", "a version over 16 bits"],
)
def test_a_value_that_does_not_fit_its_field_is_refused(command: Command) -> None:
    with pytest.raises(FrameError, match="cannot be written"):
        binary_header.encode(command)
