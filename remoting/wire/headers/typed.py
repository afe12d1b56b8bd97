"""extFields to a typed header and back (RocketMQ's `CommandCustomHeader`).

A header is a msgspec struct whose fields are int, bool, str, or those with None. On the wire everything is a string;
keys are the camelCase names unless the struct renames them. None is left out. Unknown keys are ignored, as every
RocketMQ server does.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from remoting.wire.errors import HeaderError


class Header(msgspec.Struct, rename="camel", kw_only=True):
    """Base of all typed headers."""


H = TypeVar("H", bound=Header)


def read_header(header_type: type[H], ext_fields: dict[str, str]) -> H:
    """Raises HeaderError naming the header and the field that is missing or garbage.

    An empty text counts as absent for anything but a text: C++ sends such fields.
    """
    try:
        return msgspec.convert(ext_fields, header_type, strict=False)
    except msgspec.ValidationError:
        return _read_patiently(header_type, ext_fields)


def _read_patiently(header_type: type[H], ext_fields: dict[str, str]) -> H:
    """Java's parsing where it differs from msgspec's: anything but "true" is false; a blank number is absent."""
    fields = dict(ext_fields)
    for field in msgspec.structs.fields(header_type):
        text = fields.get(field.encode_name)
        if text is None:
            continue
        kinds = {field.type, *getattr(field.type, "__args__", ())}
        if bool in kinds:
            fields[field.encode_name] = "true" if text.lower() == "true" else "false"
        elif int in kinds and not text.strip():
            del fields[field.encode_name]
    try:
        return msgspec.convert(fields, header_type, strict=False)
    except msgspec.ValidationError as error:
        raise HeaderError(f"{header_type.__name__}: {error}") from error


def write_header(header: Header) -> dict[str, str]:
    """The header as strings, None left out."""
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
