"""The body of a batch send: entries one after the other.

    | 4 total size | 4 magic 0 | 4 body CRC 0 | 4 flag | 4 + n body | 2 + n properties |

All entries go to one topic and one queue; a batch is never compressed. Java: `MessageDecoder.encodeMessage`,
`decodeMessage`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from remoting.wire import limits
from remoting.wire.errors import BodyError
from remoting.wire.properties import encode_properties

_HEAD = struct.Struct(">iiiii")  # total, magic, crc, flag, body length
_LENGTH = struct.Struct(">h")
_ENTRY_BYTES_MIN = _HEAD.size + _LENGTH.size


class BatchEntry(NamedTuple):
    """One message of a batch; `properties_text` as it travels (`properties.decode_properties` reads it)."""

    flag: int
    body: bytes
    properties_text: str


def encode_batch(messages: Iterable[tuple[int, bytes, Mapping[str, str]]]) -> bytes:
    """Encodes (flag, body, properties) of each message as one body. Raises BodyError on too long properties."""
    parts: list[bytes] = []
    for flag, body, properties in messages:
        encoded = encode_properties(properties).encode("utf-8", "replace")
        if len(encoded) > limits.PROPERTIES_BYTES_MAX:
            raise BodyError(f"properties of {len(encoded)} bytes; at most {limits.PROPERTIES_BYTES_MAX}")
        total = _ENTRY_BYTES_MIN + len(body) + len(encoded)
        parts += (_HEAD.pack(total, 0, 0, flag, len(body)), body, _LENGTH.pack(len(encoded)), encoded)
    return b"".join(parts)


def decode_batch(body: bytes | bytearray | memoryview) -> list[BatchEntry]:
    """Returns the entries of a batch body. Raises BodyError where a length does not fit, or there are too many."""
    view = memoryview(body)
    entries: list[BatchEntry] = []
    position = 0
    while position < len(view):
        if len(entries) == limits.BATCH_MESSAGES_MAX:
            raise BodyError(f"a batch may hold {limits.BATCH_MESSAGES_MAX} messages: send several smaller ones")
        entry, position = _decode_entry(view, position)
        entries.append(entry)
    return entries


def _decode_entry(view: memoryview, start: int) -> tuple[BatchEntry, int]:
    if len(view) - start < _ENTRY_BYTES_MIN:
        raise BodyError(f"batch ends within an entry at byte {start}")
    total, _, _, flag, body_length = _HEAD.unpack_from(view, start)
    end = start + total
    body_end = start + _HEAD.size + body_length
    if body_length < 0 or end > len(view) or body_end + _LENGTH.size > end:
        raise BodyError(f"batch entry at byte {start} has lengths that do not fit")
    (properties_length,) = _LENGTH.unpack_from(view, body_end)
    properties_start = body_end + _LENGTH.size
    if properties_length < 0 or properties_start + properties_length != end:
        raise BodyError(f"batch entry at byte {start} has lengths that do not fit")
    text = str(view[properties_start:end], "utf-8", "replace")
    return BatchEntry(flag, bytes(view[start + _HEAD.size : body_end]), text), end
