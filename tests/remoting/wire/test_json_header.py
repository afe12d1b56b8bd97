from __future__ import annotations

import pytest

from remoting.wire import json_header
from remoting.wire.codes import LanguageCode
from remoting.wire.command import Command
from remoting.wire.errors import FrameError
from remoting.wire.limits import LENIENT_HEADER_BYTES_MAX

# What other clients and careless writers send, and what it means.
DIALECTS = {
    "Java": (
        b'{"code":34,"extFields":{"a":"b"},"flag":0,"language":"JAVA","opaque":5,"version":479}',
        Command(code=34, opaque=5, language=LanguageCode.JAVA, version=479, ext_fields={"a": "b"}),
    ),
    "Go: an empty remark, no serialize type": (
        b'{"code":34,"language":"GO","version":317,"opaque":5,"flag":0,"remark":"","extFields":{"a":"b"}}',
        Command(code=34, opaque=5, language=LanguageCode.GO, version=317, remark="", ext_fields={"a": "b"}),
    ),
    "C++: numbers and booleans in extFields": (
        b'{"code":310,"extFields":{"d":4,"e":-1,"g":1700000000000,"k":false,"f":1.5},"flag":0,"language":"CPP","opaque":5,"version":333}\n',
        Command(
            code=310,
            opaque=5,
            language=LanguageCode.CPP,
            version=333,
            ext_fields={"d": "4", "e": "-1", "g": "1700000000000", "k": "false", "f": "1.5"},
        ),
    ),
    "no extFields, null extFields": (b'{"code":1,"extFields":null}', Command(code=1, language=7, version=0)),
    "null inside extFields": (
        b'{"code":1,"extFields":{"a":null,"b":"x"}}',
        Command(code=1, language=7, version=0, ext_fields={"b": "x"}),
    ),
    "an object inside extFields": (
        b'{"code":1,"extFields":{"a":{"b":[1]}}}',
        Command(code=1, language=7, version=0, ext_fields={"a": '{"b":[1]}'}),
    ),
    "names without quotes, single quotes, trailing commas": (
        b"{code:1,extFields:{topic:'T',queueId:3,},opaque:5,language:'JAVA',}",
        Command(code=1, opaque=5, language=0, version=0, ext_fields={"topic": "T", "queueId": "3"}),
    ),
    "control characters as they are": (
        b'{"code":1,"extFields":{"i":"TAGS\x01a\x02"}}',
        Command(code=1, language=7, version=0, ext_fields={"i": "TAGS\x01a\x02"}),
    ),
    "numbers as text": (b'{"code":"1","opaque":"5"}', Command(code=1, opaque=5, language=7, version=0)),
    "blanks and line ends": (b'\n{ "code" : 1 ,\t"opaque" : 5 }\n', Command(code=1, opaque=5, language=7, version=0)),
    "unknown keys": (b'{"code":1,"new":{"x":[1,2]},"zone":null}', Command(code=1, language=7, version=0)),
    "an unknown language name": (b'{"code":1,"language":"KLINGON"}', Command(code=1, language=7, version=0)),
    "a language number": (b'{"code":1,"language":9}', Command(code=1, language=9, version=0)),
    "a version from the future": (b'{"code":1,"version":99999}', Command(code=1, language=7, version=99999)),
    "half a character": (b'{"code":1,"remark":"\\ud83d!"}', Command(code=1, language=7, version=0, remark="?!")),
    "a remark that is a number": (b'{"code":1,"remark":5}', Command(code=1, language=7, version=0, remark="5")),
}

REFUSED = {
    "nothing": b"",
    "null": b"null",
    "a list": b"[1]",
    "a text": b'"code"',
    "no code": b'{"opaque":1}',
    "a code that is null": b'{"code":null}',
    "a code with a fraction": b'{"code":1.5}',
    "a code beyond 32 bits": b'{"code":2147483648}',
    "an opaque beyond 32 bits": b'{"code":1,"opaque":-2147483649}',
    "a flag beyond 32 bits": b'{"code":1,"flag":99999999999}',
    "a version beyond 64 bits": b'{"code":1,"version":99999999999999999999999}',
    "a number of 5000 digits": b'{"code":' + b"9" * 5000 + b"}",
    "an unknown language number": b'{"code":1,"language":14}',
    "not a number": b'{"code":NaN}',
    "extFields that are a list": b'{"code":1,"extFields":["a"]}',
    "extFields that are a text": b'{"code":1,"extFields":"a"}',
    "lists without end": b'{"code":1,"x":' + b"[" * 100_000,
    "objects without end": b'{"code":1,"x":' + b'{"a":' * 100_000,
    "an unclosed text": b'{"code":1,"remark":"abc',
}


@pytest.mark.parametrize(("header", "meaning"), DIALECTS.values(), ids=DIALECTS.keys())
def test_every_dialect_is_understood(header: bytes, meaning: Command) -> None:
    assert json_header.decode(header) == meaning


@pytest.mark.parametrize("header", REFUSED.values(), ids=REFUSED.keys())
def test_headers_that_fastjson_cannot_read_are_refused(header: bytes) -> None:
    with pytest.raises(FrameError):
        json_header.decode(header)


def test_encode_writes_compact_json_with_strings_only() -> None:
    """Go takes nothing else."""
    written = json_header.encode(Command(code=105, opaque=7, ext_fields={"queueId": "3"}, remark="no\x01"))
    assert written == (
        b'{"code":105,"extFields":{"queueId":"3"},"flag":0,"language":"PYTHON","opaque":7,'
        b'"serializeTypeCurrentRPC":"JSON","version":479,"remark":"no\\u0001"}'
    )


def test_a_language_that_no_table_knows_is_written_as_other() -> None:
    assert b'"language":"OTHER"' in json_header.encode(Command(code=1, language=99))


@pytest.mark.parametrize(
    "unit", [b'"a', b'\\"', b"{", b"{,", b",     ", b',"a":1', b"{a:", b"'\\'"], ids=lambda unit: unit.decode()
)
def test_a_hostile_header_is_refused_in_time_that_grows_with_its_length_alone(unit: bytes) -> None:
    # Time that grows with the square of it would be minutes here: the suite's limit for one test ends that.
    with pytest.raises(FrameError):
        json_header.decode(b'{{"a' + unit * ((LENIENT_HEADER_BYTES_MAX - 4) // len(unit)))


def test_a_long_header_must_be_standard_json() -> None:
    long = b"x" * LENIENT_HEADER_BYTES_MAX
    assert json_header.decode(b'{"code":1,"remark":"' + long + b'"}').remark == long.decode()
    with pytest.raises(FrameError, match="must be standard JSON"):
        json_header.decode(b'{code:1,"remark":"' + long + b'"}')
