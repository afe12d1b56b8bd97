"""Numbers in the values of properties, read as Java's `Integer.valueOf`, `Long.valueOf` and `Double.valueOf` read them.

Python's own `int` and `float` take other texts for numbers (1_000, blanks around integers), hence the rules here.
"""

from __future__ import annotations

import math
import re

from broker.engine.filters.errors import Incomparable

INTEGER_MIN, INTEGER_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1

# What Java's `trim` takes off.
_BLANKS = "".join(map(chr, range(0x21)))
_DOUBLE = re.compile(r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?")
_HEX_DOUBLE = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")

# Sorts as `Double.compareTo`: -0.0 before 0.0, NaN behind all and equal to itself.
DoubleKey = tuple[bool, float, float]


def integer_of(value: bytes) -> int:
    """32 bits. Raises Incomparable."""
    number = _whole(value)
    if not INTEGER_MIN <= number <= INTEGER_MAX:
        raise Incomparable(f"{value!r} does not fit 32 bits")
    return number


def long_of(value: bytes) -> int:
    """64 bits. Raises Incomparable."""
    number = _whole(value)
    if not LONG_MIN <= number <= LONG_MAX:
        raise Incomparable(f"{value!r} does not fit 64 bits")
    return number


def _whole(value: bytes) -> int:
    """Any decimal digits with or without a sign; Java sees no digits beyond the first 65,536 characters."""
    text = value.decode("utf-8", "replace")
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal() or (not digits.isascii() and max(digits) > "\uffff"):
        raise Incomparable(f"{text!r} is no integer")
    try:
        return int(text)
    except ValueError:  # thousands of digits
        raise Incomparable(f"{text!r} is too long for an integer") from None


def finite_of(value: bytes) -> float:
    """To be compared with a finite number that is not zero; NaN is larger, too. Raises Incomparable."""
    is_nan, number, _ = double_of(value)
    return math.inf if is_nan else number


def double_of(value: bytes) -> DoubleKey:
    """Raises Incomparable."""
    text = value.decode("utf-8", "replace")
    trimmed = text.strip(_BLANKS)
    decimal = _DOUBLE.fullmatch(trimmed)
    if decimal is not None and (decimal[1] == trimmed or decimal[1][-1] not in "Ny"):
        return double_key(float(decimal[1]))
    hexadecimal = _HEX_DOUBLE.fullmatch(trimmed)
    if hexadecimal is None:
        raise Incomparable(f"{text!r} is no number")
    return double_key(_from_hex(hexadecimal[1]))


def _from_hex(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return math.copysign(math.inf, -1 if text.startswith("-") else 1)


def double_key(number: float) -> DoubleKey:
    if math.isnan(number):
        return True, 0.0, 1.0
    return False, number, math.copysign(1.0, number)
