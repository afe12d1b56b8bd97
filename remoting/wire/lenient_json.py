"""JSON as fastjson 1.2 writes and accepts it, read and written (admin-protocol 3).

Three habits of fastjson that no standard parser takes: maps keyed by objects (`{{"topic":"T"}:5}`), integer keys
without quotes (`{0:"addr"}`), and `{"$ref":"$.path"}` for an object written before. `loads` tries the standard
first, because almost every body is standard.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from remoting.wire.errors import BodyError

# Consumes whole strings first, so that nothing inside one is ever taken for a key.
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"'
    r'|(?<=[{,])\s*(?P<object>\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\})\s*(?=:)'
    r"|(?<=[{,])\s*(?P<bare>-?\d+|[A-Za-z_$][\w$]*)\s*(?=:)"
    r"|'(?P<single>(?:[^'\\]|\\.)*)'"
    r"|,\s*(?=[}\]])",
    re.DOTALL,
)
_REF = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


def loads(data: bytes | bytearray | memoryview) -> Any:
    """A value of plain dicts, lists and scalars; an object key becomes its JSON text, to be read with `key_object`.

    Raises BodyError when the text is beyond fastjson's dialect.
    """
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = _loads_dialect(bytes(data))
    return _resolve_refs(value) if b'"$ref"' in bytes(data) else value


def _loads_dialect(data: bytes) -> Any:
    try:
        text = data.decode()
        return json.loads(_TOKEN.sub(_normalise, text), strict=False)
    except (ValueError, RecursionError) as error:
        raise BodyError(f"the JSON body cannot be read: {error}") from error


def _normalise(match: re.Match[str]) -> str:
    if match["object"] is not None:
        return json.dumps(match["object"])
    if match["bare"] is not None:
        return json.dumps(match["bare"])
    if match["single"] is not None:
        return json.dumps(match["single"])
    return "" if match[0].startswith(",") else match[0]


def key_object(key: str) -> dict[str, Any]:
    """The object behind a key that `loads` turned into text. Raises BodyError for a key that is none."""
    try:
        value = msgspec.json.decode(key.encode())
    except msgspec.DecodeError as error:
        raise BodyError(f"map key {key!r} is not an object") from error
    if not isinstance(value, dict):
        raise BodyError(f"map key {key!r} is not an object")
    return value


def dumps(value: Any) -> bytes:
    """Compact standard JSON (Go's client splits on commas and colons: a blank would break it)."""
    return msgspec.json.encode(value)


def dumps_object_keyed(entries: Iterable[tuple[Any, Any]]) -> bytes:
    """A map keyed by objects in fastjson's own form, the only one that every client decodes (admin-protocol 3.3)."""
    pairs = (msgspec.json.encode(key) + b":" + msgspec.json.encode(value) for key, value in entries)
    return b"{" + b",".join(pairs) + b"}"


def dumps_with_raw(fields: dict[str, Any]) -> bytes:
    """An object some of whose values are already encoded (`msgspec.Raw`, from `dumps_object_keyed`)."""
    return msgspec.json.encode(fields)


def _resolve_refs(root: Any) -> Any:
    """Replaces `{"$ref": "$.a[0].b"}` by the value it names; one that leads nowhere becomes None."""
    return _resolve(root, root)


def _resolve(value: Any, root: Any) -> Any:
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(path := value.get("$ref"), str):
            return _at_path(root, path)
        return {key: _resolve(item, root) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolve(item, root) for item in value]
    return value


def _at_path(root: Any, path: str) -> Any:
    value = root
    for name, number in _REF.findall(path):
        try:
            value = value[int(number)] if number else value[name]
        except (KeyError, IndexError, TypeError):
            return None
    return value
