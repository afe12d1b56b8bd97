"""Java's properties text: `name=value` lines, as 25 and 26 carry them and RocketMQ's configuration files hold them.

Read as `java.util.Properties.load` reads, written as `MixAll.properties2String` writes: sorted, nothing escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

# A name ends at the first `=`, `:` or white space that no backslash precedes; white space may surround the mark.
_LINE = re.compile(r"((?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(.*)\Z", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(text: str) -> dict[str, str]:
    """Returns the properties in `text`; of one name the last counts. Never raises: a line without a mark is a name.

    >>> read_properties("# why\\nname = a b \\nother:c")
    {'name': 'a b ', 'other': 'c'}
    """
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        match = _LINE.match(line)
        if match is not None:
            properties[_unescape(match[1])] = _unescape(match[2])
    return properties


def write_properties(properties: Mapping[str, str]) -> str:
    """Encodes properties sorted by name, one a line."""
    return "".join(f"{name}={value}\n" for name, value in sorted(properties.items()))


def _logical_lines(text: str) -> Iterator[str]:
    """Yields the lines without comments and empty ones; one with a backslash at its end is joined with the next."""
    begun = ""
    for line in re.split(r"\r\n|\r|\n", text):
        rest = line.lstrip(" \t\f")
        if not begun and (not rest or rest[0] in "#!"):
            continue
        begun += rest
        if (len(begun) - len(begun.rstrip("\\"))) % 2:
            begun = begun[:-1]
            continue
        yield begun
        begun = ""
    if begun:
        yield begun


def _unescape(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        what = match[1]
        return chr(int(what[1:], 16)) if len(what) > 1 else _LETTERS.get(what, what)

    return _ESCAPE.sub(plain, text)
