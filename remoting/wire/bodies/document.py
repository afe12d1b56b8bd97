"""A JSON body to a typed document and back.

A document is a msgspec struct with camelCase keys. Reading coerces the dialects of C++ and Go (numbers as text),
ignores unknown keys and treats null as absent.
"""

from __future__ import annotations

import sys
from typing import Any, TypeVar

import msgspec

from remoting.wire import lenient_json
from remoting.wire.command import Body
from remoting.wire.errors import BodyError


class Document(msgspec.Struct, rename="camel", kw_only=True):
    """Base of all JSON documents. rename and kw_only are repeated where a subclass needs them otherwise."""


D = TypeVar("D")


def read_body(document_type: type[D], body: Body) -> D:
    """Reads a document. Raises BodyError with its name and the fault."""
    try:
        return msgspec.json.decode(body, type=document_type, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return convert(document_type, _without_nulls(lenient_json.loads(body)))


def read_object(name: str, body: Body, dialect_bytes_max: int = sys.maxsize) -> dict[str, Any]:
    """Returns the JSON object in `body`, nulls left out, for documents that no struct describes. Raises BodyError."""
    text = bytes(body)
    value = lenient_json.loads(text, dialect_bytes_max)
    if b"null" in text or b'"$ref"' in text:  # looking for them takes longer than reading
        value = _without_nulls(value)
    if not isinstance(value, dict):
        raise BodyError(f"{name}: not an object")
    return value


def convert(document_type: type[D], value: Any) -> D:
    """Converts plain dicts and lists to a document. Raises BodyError with its name and the fault."""
    try:
        return msgspec.convert(value, document_type, strict=False)
    except msgspec.ValidationError as error:
        name = getattr(document_type, "__name__", str(document_type))
        raise BodyError(f"{name}: {error}") from error


def write_body(document: Any) -> bytes:
    """Encodes a document as compact JSON."""
    return msgspec.json.encode(document)


def _without_nulls(value: Any) -> Any:
    """Raises BodyError where the nesting is deeper than this process can follow."""
    try:
        return without_nulls(value)
    except RecursionError as error:
        raise BodyError("the JSON is nested too deeply") from error


def without_nulls(value: Any) -> Any:
    """Returns `value` without nulls at any depth: Java writes nulls or leaves them out, and both mean absent."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value
