"""The ROCKETMQ (binary) header of a command, both directions.

code i16 | language i8 | version i16 | opaque i32 | flag i32
remark: i32 byte length (0 = none) + UTF-8
extFields: i32 byte length of all entries (0 = none), then per entry
    key:   i16 byte length + UTF-8
    value: i32 byte length + UTF-8
"""

from __future__ import annotations

import struct

from remoting.wire.codes import LanguageCode, SerializeType
from remoting.wire.command import Command
from remoting.wire.errors import FrameError

_FIXED = struct.Struct(">hbhiii")  # code, language, version, opaque, flag, remark length
_I16 = struct.Struct(">h")
_I32 = struct.Struct(">i")
_LANGUAGES = {int(language) for language in LanguageCode}


def decode(data: bytes) -> Command:
    """Decodes a binary header; bytes that are no UTF-8 become U+FFFD, as in Java.

    Raises FrameError for lengths that do not add up or an unknown language.
    """
    try:
        return _decode(data)
    except struct.error as error:
        raise FrameError(f"the binary header cannot be read: {error}") from error


def _decode(data: bytes) -> Command:
    code, language, version, opaque, flag, remark_bytes = _FIXED.unpack_from(data, 0)
    if language not in _LANGUAGES:
        raise FrameError(f"unknown language number {language}")
    position = _FIXED.size
    remark = _text(data, position, remark_bytes) if remark_bytes else None
    position += remark_bytes
    (fields_bytes,) = _I32.unpack_from(data, position)
    position += _I32.size
    if fields_bytes < 0 or position + fields_bytes > len(data):
        raise FrameError(f"extFields of {fields_bytes} bytes exceed the header of {len(data)} bytes")
    return Command(
        code=code,
        opaque=opaque,
        flag=flag,
        language=language,
        version=version,
        remark=remark,
        ext_fields=_decode_fields(data, position, position + fields_bytes),
        serialize_type=SerializeType.ROCKETMQ,
    )


def _decode_fields(data: bytes, position: int, end: int) -> dict[str, str]:
    fields: dict[str, str] = {}
    while position < end:
        (key_bytes,) = _I16.unpack_from(data, position)
        position += _I16.size
        key = _text(data, position, key_bytes)
        position += key_bytes
        (value_bytes,) = _I32.unpack_from(data, position)
        position += _I32.size
        fields[key] = _text(data, position, value_bytes)
        position += value_bytes
    return fields


def _text(data: bytes, position: int, length: int) -> str:
    if length < 0 or position + length > len(data):
        raise FrameError(f"a text of {length} bytes exceeds the header of {len(data)} bytes")
    return data[position : position + length].decode("utf-8", "replace")


def encode(command: Command) -> bytes:
    """Encodes a command's header. The code is cut to 16 bits, as in Java: this form has no codes above 32767.

    Raises FrameError when a number or a key does not fit its field.
    """
    try:
        return _encode(command)
    except (struct.error, UnicodeEncodeError) as error:
        raise FrameError(f"{command} cannot be written: {error}") from error


def _encode(command: Command) -> bytes:
    remark = (command.remark or "").encode()
    entries = bytearray()
    for key, value in command.ext_fields.items():
        key_utf8, value_utf8 = key.encode(), value.encode()
        entries += _I16.pack(len(key_utf8))
        entries += key_utf8
        entries += _I32.pack(len(value_utf8))
        entries += value_utf8
    code = (command.code + 0x8000) % 0x10000 - 0x8000
    fixed = _FIXED.pack(code, command.language, command.version, command.opaque, command.flag, len(remark))
    return b"".join((fixed, remark, _I32.pack(len(entries)), entries))
