"""The words of an SQL92 expression, one at a time (token rules of RocketMQ's `SelectorParser.jj`).

The longest word wins. Keywords are taken in any case, names as they are written. Blanks, `/* … */` and `-- …` up to
the end of a line stand for nothing; without an end of line `--` is two minus signs, as in RocketMQ.

Only what is asked for is looked at: RocketMQ never reads further than one word behind the expression, and neither
must whoever accepts the same expressions.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from broker.engine.filters.errors import FilterError


class Kind(Enum):
    END = "the end"
    NAME = "a property"
    STRING = "a string"
    INTEGER = "an integer"
    DECIMAL = "a decimal"
    KEYWORD = "a keyword"
    SYMBOL = "a symbol"


class Token(NamedTuple):
    """`text` as written; of keywords in capitals; of strings without the quotes, doubled ones made single."""

    kind: Kind
    text: str
    position: int

    def __str__(self) -> str:
        return self.kind.value if self.kind is Kind.END else repr(self.text)


KEYWORDS = frozenset(
    ("NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS", "CONTAINS", "STARTSWITH", "ENDSWITH")
)

_NOTHING = re.compile(r"(?:[ \t\n\r\f]|--[^\n\r]*[\n\r]|/\*(?:[^*]|\*(?!/))*\*/)+")
# Of two that fit, the longer is named first. 007 is three integers: RocketMQ knows no leading zeros.
_WORD = re.compile(
    r"(?P<decimal>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)"
    r"|(?P<integer>0|[1-9][0-9]*[lL]?)"
    r"|(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)"
    r"|(?P<string>'(?:''|[^'])*')"
    r"|(?P<symbol><>|<=|>=|[=<>(),+-])"
)
_KINDS = {
    "decimal": Kind.DECIMAL,
    "integer": Kind.INTEGER,
    "name": Kind.NAME,
    "string": Kind.STRING,
    "symbol": Kind.SYMBOL,
}


class Tokens:
    """`current` is the next word that nobody took yet."""

    def __init__(self, text: str) -> None:
        """Raises FilterError when the first word is none."""
        self._text = text
        self._position = 0
        self.current = self._read()

    def take(self) -> Token:
        """Raises FilterError when the word behind it is none."""
        taken = self.current
        self.current = self._read()
        return taken

    def take_if(self, text: str) -> bool:
        """Whether the next word was this keyword or symbol."""
        if not self.is_at(text):
            return False
        self.take()
        return True

    def is_at(self, *texts: str) -> bool:
        return self.current.kind in (Kind.KEYWORD, Kind.SYMBOL) and self.current.text in texts

    def expect(self, text: str, remedy: str) -> None:
        if not self.take_if(text):
            raise FilterError(self.current.position, f"found {self.current} where {text} must stand", remedy)

    def _read(self) -> Token:
        nothing = _NOTHING.match(self._text, self._position)
        start = nothing.end() if nothing else self._position
        if start == len(self._text):
            self._position = start
            return Token(Kind.END, "", start)
        word = _WORD.match(self._text, start)
        if word is None:
            raise _no_word(self._text, start)
        self._position = word.end()
        return _token(word, start)


def _token(word: re.Match[str], start: int) -> Token:
    text = word.group()
    kind = _KINDS[str(word.lastgroup)]
    if kind is Kind.NAME and text.upper() in KEYWORDS:
        return Token(Kind.KEYWORD, text.upper(), start)
    if kind is Kind.STRING:
        return Token(kind, text[1:-1].replace("''", "'"), start)
    return Token(kind, text, start)


def _no_word(text: str, start: int) -> FilterError:
    if text[start] == "'":
        return FilterError(start, "a string without its end", "close it with ', and write ' inside of it twice")
    if text.startswith("/*", start):
        return FilterError(start, "a comment without its end", "close it with */")
    remedy = "properties are letters, digits, _ and $; strings stand in single quotes; operators are = <> < <= > >="
    return FilterError(start, f"{text[start]!r} has no meaning here", remedy)
