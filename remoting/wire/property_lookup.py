"""Looks up properties in their text as it is stored, without decoding the others.

A text here is the stored one behind one more 0x02: so every name, the first one too, stands between 0x02 and 0x01,
and the search for a mark finds the whole name and nothing else. The rules are those of `properties.py`:
the last of one name counts, an empty value is none.
"""

from __future__ import annotations

from remoting.wire.properties import NAME_END, VALUE_END

TEXT_START = VALUE_END.encode()


def mark_of(name: str) -> bytes:
    """Returns the bytes before the value of a property. `name` has no control characters."""
    return f"{VALUE_END}{name}{NAME_END}".encode()


def last_value(text: bytes, mark: bytes) -> bytes:
    """Returns the property's value, empty if it is missing: the last one that is not empty.

    Where the mark is missing, `rpartition` gives the whole text, which begins with an end.
    """
    value = b""
    while not value and mark in text:
        text, _, rest = text.rpartition(mark)
        value = rest.partition(TEXT_START)[0]
    return value
