"""`String.hashCode` of Java: brokers and clients of every language agree on it for tags.

h = 31 * h + c over the UTF-16 code units, wrapped to signed 32 bits. `TagA` is 2598919, `中文` is 646394.
Unrolled, that is the sum of c[i] * 31^(n-1-i), which runs at C speed in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul

_CHUNK_UNITS = 256
_MASK = 0xFFFFFFFF
# 31^255 … 31^0, each modulo 2^32.
_POWERS = tuple(pow(31, exponent, 1 << 32) for exponent in reversed(range(_CHUNK_UNITS)))


def string_hash(text: str) -> int:
    """Returns the signed 32-bit hash of `text`; 0 for the empty text."""
    units = _code_units(text)
    unsigned = 0
    for start in range(0, len(units), _CHUNK_UNITS):
        chunk = units[start : start + _CHUNK_UNITS]
        weights = _POWERS[_CHUNK_UNITS - len(chunk) :]
        unsigned = (unsigned * weights[0] * 31 + sum(map(mul, chunk, weights))) & _MASK
    return unsigned - (1 << 32) if unsigned >> 31 else unsigned


def _code_units(text: str) -> Sequence[int]:
    if text.isascii():
        return text.encode("ascii")
    raw = text.encode("utf-16-le", "surrogatepass")
    return [low | high << 8 for low, high in zip(raw[::2], raw[1::2], strict=True)]
