"""Java's properties text: `name=value` lines, as 25 and 26 carry them and RocketMQ's configuration files hold them.

A request's text is read as `java.util.Properties.load` reads; an answer's is written as `MixAll.properties2String`
writes: sorted, nothing escaped. So who sends a request escapes, and who reads an answer must not unescape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

# A name ends at the first `=`, `:` or white space that no backslash precedes; white space may surround the mark.
_LINE = re.compile(r"((?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(.*)\Z", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# Java reads a request's bytes as ISO 8859-1, so all that is not printable ASCII must be escaped, too.
_ESCAPED = re.compile(r"[^!-~]|[\\=:#!]")
_ESCAPED_IN_VALUE = re.compile(r"[^ -~]|\\|^ ")


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


def write_escaped_properties(properties: Mapping[str, str]) -> str:
    """Encodes properties so that `read_properties` and Java read back exactly these, whatever characters they hold.

    >>> write_escaped_properties({"name": "a\\nb=c"})
    'name=a\\\\u000ab=c\\n'
    """
    return "".join(
        f"{_ESCAPED.sub(_escape, name)}={_ESCAPED_IN_VALUE.sub(_escape, value)}\n" for name, value in properties.items()
    )


def read_plain_properties(text: str) -> dict[str, str]:
    """Returns what `write_properties` wrote: nothing is unescaped, a line without `=` goes on with the last value.

    >>> read_plain_properties("path=C:\\\\new\\nname=a=b\\n")
    {'path': 'C:\\\\new', 'name': 'a=b'}
    """
    properties: dict[str, str] = {}
    name = ""
    for line in text.removesuffix("\n").split("\n"):
        head, mark, value = line.partition("=")
        if mark:
            name = head
            properties[name] = value
        elif name:
            properties[name] += f"\n{line}"
    return properties


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

    # Beyond the first plane Java escapes both halves of a character.
    return _ESCAPE.sub(plain, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
