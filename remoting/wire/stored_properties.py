"""Reads the properties of a stored message without its body, which may be large (layout: `stored_message.py`).

The record is read in two parts, its start and what follows the body: topic and properties.
"""

from __future__ import annotations

import struct

from remoting.wire.errors import BodyError
from remoting.wire.property_lookup import TEXT_START
from remoting.wire.stored_message import HEADS, MAGIC_V2, SYS_FLAG_POSITION

# Bits of the sys flag: with one of them the start is longer.
IP_V6_FLAGS = 3 << 4
# The longest start: both hosts are IPv6.
START_BYTES_MAX = HEADS[3].size
_START_BYTES_MIN = HEADS[0].size
_INT = struct.Struct(">i")
_MAGIC = struct.Struct(">4xI")
_SHORT = struct.Struct(">H")


def tail_position(start: bytes) -> int:
    """Returns where the part behind the body begins, from the record's first bytes in `start`. Raises BodyError."""
    if len(start) < _START_BYTES_MIN:
        raise BodyError(f"a stored message is cut off after {len(start)} bytes")
    head = HEADS[(_INT.unpack_from(start, SYS_FLAG_POSITION)[0] >> 4) & 3]
    if len(start) < head.size:
        raise BodyError(f"a stored message is cut off after {len(start)} bytes")
    body_bytes: int = _INT.unpack_from(start, head.size - _INT.size)[0]
    if body_bytes < 0:
        raise BodyError(f"a stored message with a body of {body_bytes} bytes")
    return head.size + body_bytes


def properties_in_tail(start: bytes, tail: bytes, position: int = 0) -> bytes:
    """Returns the properties of the message whose part behind the body begins at `position` of `tail`.

    Raises BodyError.
    """
    magic: int = _MAGIC.unpack_from(start)[0]
    return properties_text(tail, position, len(tail), magic)


def properties_text(content: bytes, position: int, end: int, magic: int) -> bytes:
    """Returns the properties of the message that ends at `end` and whose part behind the body begins at `position`.

    The bytes are as `property_lookup.py` has them. Raises BodyError where the message is cut off.
    """
    try:
        if magic == MAGIC_V2:
            position += 2 + _SHORT.unpack_from(content, position)[0]
        else:
            position += 1 + content[position]
        properties_bytes: int = _SHORT.unpack_from(content, position)[0]
    except (struct.error, IndexError) as error:
        raise BodyError("a stored message is cut off behind its body") from error
    position += _SHORT.size
    if position + properties_bytes > end:
        raise BodyError("a stored message is cut off in its properties")
    return TEXT_START + content[position : position + properties_bytes]
