"""The shape of a message's body: what it has in common with others that a listener would fail on alike. Pure.

{"id": 17, "total": 9.5}    → "JSON object: id number, total number"
[1, 2]                      → "JSON array"
good morning                → "text"
bytes that are no text      → "binary"
"""

from __future__ import annotations

from typing import Any

import msgspec

# Larger bodies are not parsed.
PARSED_BYTES_MAX = 256 * 1024
FIELDS_MAX = 20
FIELD_CHARS_MAX = 40

_KINDS: dict[type, str] = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "text",
    list: "array",
    dict: "object",
    type(None): "null",
}


def shape_of(body: bytes) -> str:
    """Returns the shape of a plain body, in at most some 900 characters."""
    if not body:
        return "empty"
    if len(body) <= PARSED_BYTES_MAX:
        try:
            return _json_shape(msgspec.json.decode(body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    try:
        text = body[:PARSED_BYTES_MAX].decode("utf-8", "strict" if len(body) <= PARSED_BYTES_MAX else "ignore")
    except UnicodeDecodeError:
        return "binary"
    return "text" if all(character.isprintable() or character.isspace() for character in text) else "binary"


def _json_shape(value: Any) -> str:
    if not isinstance(value, dict):
        return f"JSON {_KINDS[type(value)]}"
    names = sorted(value)
    fields = [f"{name[:FIELD_CHARS_MAX]} {_KINDS[type(value[name])]}" for name in names[:FIELDS_MAX]]
    further = [f"and {len(names) - FIELDS_MAX} more"] if len(names) > FIELDS_MAX else []
    return f"JSON object: {', '.join([*fields, *further])}" if fields else "JSON object without fields"
