"""Reads numbers in the values of properties as Java's `Integer.valueOf`, `Long.valueOf` and `Double.valueOf` do.

Python's own `int` and `float` accept other texts (1_000, blanks around integers), hence the rules here. Values are the
stored bytes; bytes that are no UTF-8 are no number.
"""

from __future__ import annotations

import math
import re

from remoting.sql92.errors import Incomparable

INTEGER_MIN, INTEGER_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1

# The characters that Java's `String.trim` strips.
_BLANKS = "".join(map(chr, range(0x21)))
_DOUBLE = re.compile(r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?")
_HEX_DOUBLE = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")

# Orders as `Double.compareTo`: -0.0 before 0.0, NaN behind all and equal to itself.
DoubleKey = tuple[bool, float, float]


def integer_of(value: bytes) -> int:
    """Returns the integer. Raises Incomparable for a value that is none of 32 bits."""
    number = _whole(value)
    if not INTEGER_MIN <= number <= INTEGER_MAX:
        raise Incomparable(f"{value!r} does not fit 32 bits")
    return number


def long_of(value: bytes) -> int:
    """Returns the integer. Raises Incomparable for a value that is none of 64 bits."""
    number = _whole(value)
    if not LONG_MIN <= number <= LONG_MAX:
        raise Incomparable(f"{value!r} does not fit 64 bits")
    return number


def _whole(value: bytes) -> int:
    """Returns the integer of decimal digits of any script with or without a sign; Java knows those of Unicode's BMP."""
    text = value.decode("utf-8", "replace")
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal() or (not digits.isascii() and max(digits) > "\uffff"):
        raise Incomparable(f"{text!r} is no integer")
    try:
        return int(text)
    except ValueError:  # thousands of digits
        raise Incomparable(f"{text!r} is too long for an integer") from None


def finite_of(value: bytes) -> float:
    """Returns a number that compares with any finite number but zero as the value does: NaN is infinite.

    Raises Incomparable for a value that is no number.
    """
    is_nan, number, _ = double_of(value)
    return math.inf if is_nan else number


def double_of(value: bytes) -> DoubleKey:
    """Returns the key of the number by which it is ordered. Raises Incomparable for a value that is no number."""
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
    """Returns the key by which a number is ordered."""
    if math.isnan(number):
        return True, 0.0, 1.0
    return False, number, math.copysign(1.0, number)
