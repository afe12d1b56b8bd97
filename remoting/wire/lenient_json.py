"""Reads and writes JSON as fastjson 1.2 does.

Three extensions of fastjson that no standard parser accepts: maps keyed by objects (`{{"topic":"T"}:5}`), integer keys
without quotes (`{0:"addr"}`), and `{"$ref":"$.path"}` for an object written before. `loads` tries the standard
first, because almost every body is standard.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from remoting.wire.errors import BodyError

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# Consumes whole strings first, so that nothing inside one is ever taken for a key. Possessive throughout, and a quote
# that is never closed ends the search: hostile text costs time in proportion to its length, not to its square.
_TOKEN = re.compile(
    rf"(?P<string>{_STRING})"
    rf'|(?<=[{{,])\s*+(?P<object>\{{(?:[^{{}}"]++|{_STRING})*+\}})\s*+(?=:)'
    r"|(?<=[{,])\s*+(?P<bare>-?\d+|[A-Za-z_$][\w$]*)\s*+(?=:)"
    r"|'(?P<single>[^'\\]*+(?:\\.[^'\\]*+)*+)'"
    r"|(?P<torn>[\"'])"
    r"|,\s*+(?=[}\]])",
    re.DOTALL,
)
_ESCAPE_OR_QUOTE = re.compile(r'\\.|"', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_REF = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
# Values that references may add to a document; each naming a large part of it, they could multiply without end.
_REFERENCED_VALUES_MAX = 1_000_000


def loads(data: bytes | bytearray | memoryview, dialect_bytes_max: int = sys.maxsize) -> Any:
    """Returns plain dicts, lists and scalars; an object key becomes its JSON text, to be read with `key_object`.

    Raises BodyError when the text is beyond fastjson's dialect, or not standard and longer than `dialect_bytes_max`:
    the dialect takes a thousand times as long to read.
    """
    try:
        value = _parse(bytes(data), dialect_bytes_max)
        return _Resolver(value).resolve(value) if b'"$ref"' in bytes(data) else value
    except RecursionError as error:
        raise BodyError("the JSON is nested too deeply") from error


def _parse(data: bytes, dialect_bytes_max: int) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if len(data) > dialect_bytes_max:
            raise BodyError(f"{len(data)} bytes of JSON that is not standard: {error}") from error
        if (quoted := _with_quoted_integer_keys(data)) is not None:
            try:
                return msgspec.json.decode(quoted)
            except (msgspec.DecodeError, UnicodeDecodeError):
                pass  # another part of the dialect
        return _parse_dialect(data)


# What stands outside of texts where integer keys are all that is not standard, with the mark of a text.
_TEXT = b"\x00"
_PLAIN = b"{}:,-0123456789" + _TEXT
_DIGITS = tuple(bytes([digit]) for digit in b"0123456789")
_DIFFERENCE = re.compile(rb"\d-")


def _with_quoted_integer_keys(data: bytes) -> bytes | None:
    """Returns the body with quotes around its integer keys; None where it has more than these, numbers and texts.

    Tables of offsets are such, and large: this takes a tenth of the time of `_parse_dialect`, because each step is one
    call for the whole body. Outside of texts every integer before a colon is a key, and a key follows { or a comma.
    """
    if b"\\" in data or _TEXT in data:
        return None
    parts = data.split(b'"')
    outside = _TEXT.join(parts[::2])
    if len(parts) % 2 == 0 or outside.translate(None, _PLAIN) or _DIFFERENCE.search(outside):
        return None
    for digit in _DIGITS:
        outside = outside.replace(b"{" + digit, b'{"' + digit).replace(b"," + digit, b',"' + digit)
        outside = outside.replace(digit + b":", digit + b'":')
    parts[::2] = outside.split(_TEXT)
    return b'"'.join(parts)


def _parse_dialect(data: bytes) -> Any:
    """Parses fastjson's dialect. Bytes that are no UTF-8 become U+FFFD, as in Java."""
    try:
        return json.loads(_TOKEN.sub(_normalise, data.decode("utf-8", "replace")), strict=False)
    except ValueError as error:
        raise BodyError(f"the JSON cannot be read: {error}") from error


def _normalise(match: re.Match[str]) -> str:
    """Returns the standard form of one token. Raises ValueError for a quote that is never closed."""
    match match.lastgroup:
        case "string":
            return _without_lone_surrogates(match[0])
        case "object" | "bare" as group:
            return json.dumps(match[group], ensure_ascii=False)
        case "single":
            return _without_lone_surrogates(f'"{_ESCAPE_OR_QUOTE.sub(_requote, match["single"])}"')
        case "torn":
            raise ValueError(f"a text at character {match.start()} is never closed")
        case _:
            return ""


def _requote(match: re.Match[str]) -> str:
    """Returns one character of a single-quoted text as it stands between double quotes."""
    return {"\\'": "'", '"': '\\"'}.get(match[0], match[0])


def _without_lone_surrogates(token: str) -> str:
    """Replaces lone surrogates, which have no UTF-8 form, by question marks, as Java does."""
    if not _SURROGATE_ESCAPE.search(token):
        return token
    text: str = json.loads(token, strict=False)
    return json.dumps(text.encode("utf-8", "replace").decode())


def key_object(key: str) -> dict[str, Any]:
    """Returns the object of a key that `loads` turned into text. Raises BodyError for a key that is none."""
    try:
        value = msgspec.json.decode(key.encode())
    except msgspec.DecodeError as error:
        raise BodyError(f"map key {key!r} is not an object") from error
    if not isinstance(value, dict):
        raise BodyError(f"map key {key!r} is not an object")
    return value


def dumps(value: Any) -> bytes:
    """Encodes compact standard JSON (Go's client splits on commas and colons: a blank would break it)."""
    return msgspec.json.encode(value)


def dumps_object_keyed(entries: Iterable[tuple[Any, Any]]) -> bytes:
    """Encodes a map keyed by objects in fastjson's form, the only one that every client decodes."""
    pairs = (msgspec.json.encode(key) + b":" + msgspec.json.encode(value) for key, value in entries)
    return b"{" + b",".join(pairs) + b"}"


class _Resolver:
    """Replaces `{"$ref": "$.a[0].b"}` by the value it names; one that leads nowhere becomes None."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._left = _REFERENCED_VALUES_MAX
        self._sizes: dict[int, int] = {}

    def resolve(self, value: Any) -> Any:
        if isinstance(value, dict):
            if len(value) == 1 and isinstance(path := value.get("$ref"), str):
                return self._at(path)
            return {key: self.resolve(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        return value

    def _at(self, path: str) -> Any:
        if not path.startswith("$"):
            return None  # relative to where it stands; no body that we know has such
        value = self._root
        for name, number in _REF.findall(path):
            try:
                value = value[int(number)] if number else value[name]
            except (KeyError, IndexError, TypeError):
                return None
        self._left -= self._size(value)
        if self._left < 0:
            raise BodyError(f"references add more than {_REFERENCED_VALUES_MAX} values to the JSON")
        return value

    def _size(self, value: Any) -> int:
        """Returns how many values there are in `value`; caches it for the parts of the document."""
        if not isinstance(value, dict | list):
            return 1
        size = self._sizes.get(id(value))
        if size is None:
            items = value.values() if isinstance(value, dict) else value
            size = self._sizes[id(value)] = 1 + sum(self._size(item) for item in items)
        return size
