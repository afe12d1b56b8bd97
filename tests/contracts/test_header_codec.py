"""One suite for both header codecs, JSON and ROCKETMQ: the same commands, the same rules, both directions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remoting.wire.codes import ONEWAY_FLAG, RESPONSE_FLAG, LanguageCode, RequestCode, ResponseCode, SerializeType
from remoting.wire.command import Command
from remoting.wire.errors import BrokenStream, FrameError
from remoting.wire.frames import FrameReader, encode_frame

CODECS = pytest.mark.parametrize("codec", list(SerializeType), ids=lambda codec: codec.name)

CASES = {
    "the least there is": Command(code=0),
    "a request with fields": Command(code=RequestCode.GET_ROUTEINFO_BY_TOPIC, opaque=7, ext_fields={"topic": "T"}),
    "a request with a body": Command(code=RequestCode.HEART_BEAT, opaque=258, body=b"{}"),
    "a oneway": Command(code=RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, flag=ONEWAY_FLAG, ext_fields={"g": "x"}),
    "an answer with a remark": Command(
        code=ResponseCode.SYSTEM_ERROR, flag=RESPONSE_FLAG, remark="it broke\n\tat line 1"
    ),
    "properties with 0x01 and 0x02": Command(code=310, ext_fields={"i": "TAGS\x01a\x02KEYS\x01k\x02"}),
    "text in many scripts": Command(code=1, remark="订单 – ü – 🐘", ext_fields={"键": "值"}),
    "JSON inside a field": Command(code=1, ext_fields={"x": '{"a":[1,"2",{}]}', "quote": '"', "slash": "\\"}),
    "an empty field": Command(code=1, ext_fields={"empty": ""}),
    "the largest numbers": Command(code=32767, opaque=2**31 - 1, flag=2**31 - 1, version=32767),
    "the smallest numbers": Command(code=-32768, opaque=-(2**31), flag=-(2**31), version=-32768),
    "another language": Command(code=34, language=LanguageCode.GO, version=317),
    "a body of zeros": Command(code=10, body=bytes(1000)),
    "many fields": Command(code=10, ext_fields={f"field{number}": str(number) for number in range(200)}),
}

text = st.text(st.characters(codec="utf-8"), max_size=50)
commands = st.builds(
    Command,
    code=st.integers(-(2**15), 2**15 - 1),
    opaque=st.integers(-(2**31), 2**31 - 1),
    flag=st.integers(-(2**31), 2**31 - 1),
    language=st.sampled_from(sorted(map(int, LanguageCode))),
    version=st.integers(-(2**15), 2**15 - 1),
    remark=st.none() | text.filter(bool),
    ext_fields=st.dictionaries(text, text, max_size=8),
    body=st.binary(max_size=300),
    serialize_type=st.sampled_from(SerializeType),
)


def there_and_back(command: Command) -> Command:
    (read,) = FrameReader().feed(encode_frame(command))
    return read


def frame(codec: SerializeType, header: bytes, body: bytes = b"") -> bytes:
    word = (codec << 24 | len(header)).to_bytes(4, "big")
    return (4 + len(header) + len(body)).to_bytes(4, "big") + word + header + body


@CODECS
@pytest.mark.parametrize("command", CASES.values(), ids=CASES.keys())
def test_a_command_comes_back_as_it_was(codec: SerializeType, command: Command) -> None:
    command.serialize_type = codec
    assert there_and_back(command) == command


@given(commands)
@pytest.mark.slow
def test_any_command_comes_back_as_it_was(command: Command) -> None:
    assert there_and_back(command) == command


@given(st.lists(commands, max_size=5), st.data())
def test_a_stream_reads_the_same_however_it_is_cut(sent: list[Command], data: st.DataObject) -> None:
    stream = b"".join(encode_frame(command) for command in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    reader = FrameReader()
    read = [
        command
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for command in reader.feed(stream[start:end])
    ]
    assert read == sent


@CODECS
def test_a_stream_of_single_bytes_reads_as_one_piece(codec: SerializeType) -> None:
    sent = [*CASES.values()][:3]
    for command in sent:
        command.serialize_type = codec
    stream = b"".join(encode_frame(command) for command in sent)
    reader = FrameReader()
    assert [command for byte in stream for command in reader.feed(bytes([byte]))] == sent


@CODECS
@given(header=st.binary(max_size=200), body=st.binary(max_size=10))
def test_garbage_in_a_header_raises_nothing_but_frame_error(codec: SerializeType, header: bytes, body: bytes) -> None:
    try:
        FrameReader().feed(frame(codec, header, body))
    except FrameError:
        pass


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_garbage_in_the_stream_raises_nothing_but_frame_error_and_cuts_do_not_matter(chunks: list[bytes]) -> None:
    def outcome(pieces: list[bytes]) -> tuple[list[Command], str | None]:
        reader, read = FrameReader(), []
        try:
            for piece in pieces:
                read += reader.feed(piece)
        except BrokenStream as error:
            return read + error.commands, str(error)
        return read, None

    assert outcome(chunks) == outcome([b"".join(chunks)])


@CODECS
@given(command=commands, position=st.integers(0, 10_000), value=st.integers(0, 255))
def test_one_changed_byte_raises_nothing_but_frame_error(
    codec: SerializeType, command: Command, position: int, value: int
) -> None:
    command.serialize_type = codec
    damaged = bytearray(encode_frame(command))
    damaged[position % len(damaged)] = value
    try:
        FrameReader().feed(bytes(damaged))
    except FrameError:
        pass


@CODECS
def test_text_that_is_no_utf_8_is_read_with_replacement_characters(codec: SerializeType) -> None:
    """Java does so; C++ clients on machines with another code page send such keys."""
    sent = encode_frame(Command(code=1, ext_fields={"key": "<?>"}, serialize_type=codec))
    (read,) = FrameReader().feed(sent.replace(b"<?>", b"<\xff>"))
    assert read.ext_fields == {"key": "<\ufffd>"}


@CODECS
def test_text_that_utf_8_cannot_write_is_refused_with_the_command_named(codec: SerializeType) -> None:
    command = Command(code=RequestCode.HEART_BEAT, remark="\ud800", serialize_type=codec)
    with pytest.raises(FrameError, match="HEART_BEAT"):
        encode_frame(command)
