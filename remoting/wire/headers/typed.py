"""extFields to a typed header and back (RocketMQ's `CommandCustomHeader`).

A header is a msgspec struct whose fields are Int32, Int64, bool, str, or those with None. On the wire everything is a
string; keys are the camelCase names unless the struct renames them. None is left out. Unknown keys are ignored, as
every RocketMQ server does.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, TypeVar, get_args

import msgspec

from remoting.wire.errors import HeaderError

# Java's int and long: a number beyond them is garbage, and must not reach a store that packs it.
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Header(msgspec.Struct, rename="camel", kw_only=True):
    """Base of all typed headers."""


H = TypeVar("H", bound=Header)


def read_header(header_type: type[H], ext_fields: dict[str, str]) -> H:
    """Reads a typed header. Raises HeaderError naming the header and the field that is missing or invalid.

    An empty text counts as absent for anything but a text: C++ sends such fields.
    """
    for name in _boolean_names(header_type):
        if ext_fields.get(name) == "1":  # true for msgspec, false for Java
            return _read_as_java(header_type, ext_fields)
    try:
        return msgspec.convert(ext_fields, header_type, strict=False)
    except msgspec.ValidationError:
        return _read_as_java(header_type, ext_fields)


def _read_as_java(header_type: type[H], ext_fields: dict[str, str]) -> H:
    """Parses as Java where msgspec differs: all but "true" is false, "+5" is 5, a blank number is absent."""
    fields = dict(ext_fields)
    for field in msgspec.structs.fields(header_type):
        text = fields.get(field.encode_name)
        if text is None:
            continue
        kinds = _kinds(field.type)
        if bool in kinds:
            fields[field.encode_name] = "true" if text.lower() == "true" else "false"
        elif int in kinds:
            if text.strip():
                fields[field.encode_name] = text[1:] if text[0] == "+" and text[1:].isdecimal() else text
            else:
                del fields[field.encode_name]
    try:
        return msgspec.convert(fields, header_type, strict=False)
    except msgspec.ValidationError as error:
        raise HeaderError(f"{header_type.__name__}: {error}") from error


@cache
def _boolean_names(header_type: type[Header]) -> tuple[str, ...]:
    """Returns the wire's names of the boolean fields."""
    return tuple(field.encode_name for field in msgspec.structs.fields(header_type) if bool in _kinds(field.type))


def _kinds(field_type: Any) -> set[Any]:
    """Returns the plain types in `int | None`, `Int32 | None` and the like."""
    return {field_type}.union(*(_kinds(argument) for argument in get_args(field_type)))


def write_header(header: Header) -> dict[str, str]:
    """Returns the header as ext fields; None is left out."""
    fields: dict[str, str] = {}
    for attribute, name in zip(header.__struct_fields__, header.__struct_encode_fields__, strict=True):
        value = getattr(header, attribute)
        if value is None:
            continue
        if value is True:
            fields[name] = "true"
        elif value is False:
            fields[name] = "false"
        else:
            fields[name] = str(value)
    return fields
