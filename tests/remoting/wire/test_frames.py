from __future__ import annotations

import pytest

from remoting.wire.codes import LanguageCode
from remoting.wire.command import Command
from remoting.wire.errors import BrokenStream, FrameError
from remoting.wire.frames import FrameReader, decode_frame, encode_frame
from remoting.wire.limits import FRAME_BYTES_MAX, HEADER_BYTES_MAX

# Opaque 7, code 105, topic T, body 01 02, as Java writes it.
JAVA_HEADER = (
    b'{"code":105,"extFields":{"topic":"T"},"flag":0,"language":"JAVA","opaque":7,'
    b'"serializeTypeCurrentRPC":"JSON","version":479}'
)
JAVA_FRAME = bytes.fromhex("00000081 0000007B") + JAVA_HEADER + b"\x01\x02"
JAVA_COMMAND = Command(
    code=105, opaque=7, language=LanguageCode.JAVA, version=479, ext_fields={"topic": "T"}, body=b"\x01\x02"
)


def refusal(stream: bytes) -> BrokenStream:
    with pytest.raises(BrokenStream) as caught:
        FrameReader().feed(stream)
    return caught.value


def test_javas_frame_is_read() -> None:
    assert FrameReader().feed(JAVA_FRAME) == [JAVA_COMMAND]


def test_javas_frame_is_written_byte_for_byte() -> None:
    assert encode_frame(JAVA_COMMAND) == JAVA_FRAME


def test_a_frame_without_body_has_an_empty_body() -> None:
    (command,) = FrameReader().feed(encode_frame(Command(code=34)))
    assert command.body == b""


@pytest.mark.parametrize(
    ("stream", "reason"),
    {
        "a negative length": (b"\xff\xff\xff\xff", "frame length -1 is shorter"),
        "no room for the header length": (b"\0\0\0\x03", "frame length 3 is shorter"),
        "more than the limit": (
            (FRAME_BYTES_MAX - 3).to_bytes(4, "big"),
            "16777217 bytes is over the limit of 16777216",
        ),
        "a header longer than its frame": (b"\0\0\0\x05\0\0\0\x02x", "header length 2 exceeds its frame of 5 bytes"),
        "an unknown kind of header": (b"\0\0\0\x05\x07\0\0\x01x", "unknown header serialize type 7"),
        "a header that is no JSON": (b"\0\0\0\x05\0\0\0\x01x", "JSON header"),
        "no header at all": (b"\0\0\0\x04\0\0\0\0", "JSON header"),
        "TLS": (b"\x16\x03\x01\x02\x00", "this is TLS"),
        "HTTP": (b"GET / HTTP/1.1\r\n", "this is HTTP"),
    }.values(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_stream_that_cannot_be_read_is_refused_with_the_reason(stream: bytes, reason: str) -> None:
    assert reason in str(refusal(stream))


def test_the_largest_frame_is_read_and_one_byte_more_is_refused() -> None:
    header = b'{"code":1}'
    length = FRAME_BYTES_MAX - 4
    largest = length.to_bytes(4, "big") + len(header).to_bytes(4, "big") + header + bytes(length - 4 - len(header))
    (command,) = FrameReader().feed(largest)
    assert len(largest) == FRAME_BYTES_MAX
    assert len(command.body) == length - 4 - len(header)
    refusal((length + 1).to_bytes(4, "big") + largest[4:])


def test_the_largest_command_is_written_and_one_byte_more_is_refused() -> None:
    room = FRAME_BYTES_MAX - len(encode_frame(Command(code=1)))
    assert len(encode_frame(Command(code=1, body=bytes(room)))) == FRAME_BYTES_MAX
    with pytest.raises(FrameError, match="over the limit of 16777216 bytes"):
        encode_frame(Command(code=1, body=bytes(room + 1)))


def test_complete_commands_before_the_break_come_with_the_error() -> None:
    assert refusal(JAVA_FRAME + JAVA_FRAME + b"\xff\xff\xff\xff").commands == [JAVA_COMMAND, JAVA_COMMAND]


def test_a_broken_stream_stays_broken() -> None:
    reader = FrameReader()
    with pytest.raises(BrokenStream):
        reader.feed(b"\xff\xff\xff\xff")
    with pytest.raises(BrokenStream) as again:
        reader.feed(JAVA_FRAME)
    assert again.value.commands == []


def test_a_smaller_limit_can_be_set() -> None:
    with pytest.raises(BrokenStream, match="over the limit of 100 bytes"):
        FrameReader(frame_bytes_max=100).feed(JAVA_FRAME)


def test_a_body_may_be_any_kind_of_bytes() -> None:
    assert encode_frame(Command(code=1, body=memoryview(b"ab"))) == encode_frame(Command(code=1, body=bytearray(b"ab")))


def test_decode_frame_takes_a_frame_without_its_length() -> None:
    assert decode_frame(JAVA_FRAME[4:]) == JAVA_COMMAND


def test_feed_returns_no_more_commands_than_requested_and_loses_none() -> None:
    reader = FrameReader()
    stream = b"".join(encode_frame(Command(code=code)) for code in range(5))
    assert [command.code for command in reader.feed(stream + b"\0\0", 2)] == [0, 1]
    assert reader.feed(b"\0", 0) == []
    assert [command.code for command in reader.feed(b"", 2)] == [2, 3]
    assert [command.code for command in reader.feed(b"", 2)] == [4]
    assert reader.buffered_bytes == 3


def test_a_header_that_no_client_has_breaks_the_stream() -> None:
    frame = encode_frame(Command(code=11, ext_fields={"subscription": "x" * HEADER_BYTES_MAX}))
    assert "is over the limit of 1048576 bytes" in str(refusal(frame))
