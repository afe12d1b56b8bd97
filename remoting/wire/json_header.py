"""The JSON header of a command, both directions.

Written with strings only in extFields and without blanks, because Go's client accepts nothing else. Read with all
the extensions of fastjson: C++ sends numbers in extFields, older writers leave names unquoted.
"""

from __future__ import annotations

from typing import Any

import msgspec

from remoting.wire import lenient_json
from remoting.wire.codes import LanguageCode, SerializeType
from remoting.wire.command import Command
from remoting.wire.errors import BodyError, FrameError
from remoting.wire.limits import LENIENT_HEADER_BYTES_MAX

_I32_MIN, _I32_MAX = -(2**31), 2**31 - 1
_LANGUAGE_BY_NAME = {language.name: int(language) for language in LanguageCode}
_LANGUAGE_NAMES = {int(language): language.name for language in LanguageCode}


class _Header(msgspec.Struct, rename="camel", omit_defaults=True):
    """What is read. Keys are in Java's order: alphabetical."""

    code: int
    ext_fields: dict[str, str] | None = None
    flag: int = 0
    language: str | int | None = None
    opaque: int = 0
    remark: str | None = None
    serialize_type_current_rpc: str | None = msgspec.field(default=None, name="serializeTypeCurrentRPC")
    version: int = 0


class _WrittenHeader(msgspec.Struct, rename="camel"):
    """What is written: every key but the null ones, for readers that expect them."""

    code: int
    ext_fields: dict[str, str]
    flag: int
    language: str
    opaque: int
    serialize_type_current_rpc: str = msgspec.field(name="serializeTypeCurrentRPC")
    version: int
    remark: str | msgspec.UnsetType = msgspec.UNSET


_decoder = msgspec.json.Decoder(_Header)
_encoder = msgspec.json.Encoder()


def decode(data: bytes) -> Command:
    """Decodes a JSON header. Raises FrameError when fastjson could not read it, or a number is beyond 32 bits."""
    try:
        header = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        header = _decode_leniently(data)
    for number in (header.code, header.opaque, header.flag, header.version):
        if not _I32_MIN <= number <= _I32_MAX:
            raise FrameError(f"the JSON header holds {str(number)[:40]}, which is outside 32 bits")
    return Command(
        code=header.code,
        opaque=header.opaque,
        flag=header.flag,
        language=_language_number(header.language),
        version=header.version,
        remark=header.remark,
        ext_fields=header.ext_fields or {},
        serialize_type=SerializeType.JSON,
    )


def encode(command: Command) -> bytes:
    """Encodes a command's header. Raises FrameError for a text that has no UTF-8 form."""
    remark = command.remark
    header = _WrittenHeader(
        code=command.code,
        ext_fields=command.ext_fields,
        flag=command.flag,
        language=_LANGUAGE_NAMES.get(command.language, "OTHER"),
        opaque=command.opaque,
        serialize_type_current_rpc="JSON",
        version=command.version,
        remark=msgspec.UNSET if remark is None else remark,
    )
    try:
        return _encoder.encode(header)
    except UnicodeEncodeError as error:
        raise FrameError(f"{command} cannot be written: {error}") from error


def _decode_leniently(data: bytes) -> _Header:
    if len(data) > LENIENT_HEADER_BYTES_MAX:
        raise FrameError(f"a JSON header of {len(data)} bytes must be standard JSON")
    try:
        fields = lenient_json.loads(data)
        if not isinstance(fields, dict):
            raise FrameError("the JSON header is not an object")
        ext_fields = fields.get("extFields") or {}
        fields["extFields"] = {str(key): _as_text(value) for key, value in ext_fields.items() if value is not None}
        if fields.get("remark") is not None:
            fields["remark"] = _as_text(fields["remark"])
        return msgspec.convert(fields, _Header, strict=False)
    except (BodyError, ValueError, AttributeError) as error:  # msgspec's errors are ValueErrors
        raise FrameError(f"JSON header: {error}") from error


def _as_text(value: Any) -> str:
    """Coerces as fastjson: numbers and booleans become their JSON text, objects their compact JSON."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _language_number(language: str | int | None) -> int:
    if isinstance(language, int):
        if language not in _LANGUAGE_NAMES:
            raise FrameError(f"unknown language number {language}")
        return language
    return _LANGUAGE_BY_NAME.get(language or "", LanguageCode.OTHER)
