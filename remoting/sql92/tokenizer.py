"""The tokens of an SQL92 expression, one at a time (token rules of RocketMQ's `SelectorParser.jj`).

The longest token wins. Keywords are read in any case, names as they are written. Blanks, `/* … */` and `-- …` up to
the end of a line are skipped; without an end of line `--` is two minus signs, as in RocketMQ.

Invariant: no more is read than one token behind the one that was taken. RocketMQ's parser never looks further, so what
follows a whole expression may be anything.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from remoting.sql92.errors import FilterError


class TokenKind(Enum):
    """The values stand in errors."""

    END = "the end"
    NAME = "a property"
    STRING = "a string"
    INTEGER = "an integer"
    DECIMAL = "a decimal"
    KEYWORD = "a keyword"
    SYMBOL = "a symbol"


class Token(NamedTuple):
    """`text` is as written; of keywords in capitals; of strings without the quotes, and doubled ones made single.

    `position` is that of its first character, from 0.
    """

    kind: TokenKind
    text: str
    position: int

    def __str__(self) -> str:
        return self.kind.value if self.kind is TokenKind.END else repr(self.text)


KEYWORDS = frozenset(
    ("NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS", "CONTAINS", "STARTSWITH", "ENDSWITH")
)

_BLANK = re.compile(r"(?:[ \t\n\r\f]|--[^\n\r]*[\n\r]|/\*(?:[^*]|\*(?!/))*\*/)+")
# Of two that fit, the longer is named first. 007 is three integers: RocketMQ knows no leading zeros.
_TOKEN = re.compile(
    r"(?P<decimal>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)"
    r"|(?P<integer>0|[1-9][0-9]*[lL]?)"
    r"|(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)"
    r"|(?P<string>'(?:''|[^'])*')"
    r"|(?P<symbol><>|<=|>=|[=<>(),+-])"
)
_KINDS = {
    "decimal": TokenKind.DECIMAL,
    "integer": TokenKind.INTEGER,
    "name": TokenKind.NAME,
    "string": TokenKind.STRING,
    "symbol": TokenKind.SYMBOL,
}


class Tokenizer:
    """`current` is the next token that was not taken yet."""

    def __init__(self, text: str) -> None:
        """Raises FilterError when the text begins with no token."""
        self._text = text
        self._position = 0
        self.current = self._read()

    def take(self) -> Token:
        """Returns the current token and reads the next. Raises FilterError when what follows is no token."""
        taken = self.current
        self.current = self._read()
        return taken

    def take_if(self, text: str) -> bool:
        """Takes the current token if it is this keyword or symbol; returns whether it was."""
        if not self.is_at(text):
            return False
        self.take()
        return True

    def is_at(self, *texts: str) -> bool:
        """Returns whether the current token is one of these keywords or symbols."""
        return self.current.kind in (TokenKind.KEYWORD, TokenKind.SYMBOL) and self.current.text in texts

    def expect(self, text: str, remedy: str) -> None:
        """Takes this keyword or symbol. Raises FilterError with the `remedy` when the current token is another."""
        if not self.take_if(text):
            raise FilterError(self.current.position, f"found {self.current} where {text} must stand", remedy)

    def _read(self) -> Token:
        blank = _BLANK.match(self._text, self._position)
        start = blank.end() if blank else self._position
        if start == len(self._text):
            self._position = start
            return Token(TokenKind.END, "", start)
        match = _TOKEN.match(self._text, start)
        if match is None:
            raise _no_token(self._text, start)
        self._position = match.end()
        return _token(match, start)


def _token(match: re.Match[str], start: int) -> Token:
    text = match.group()
    kind = _KINDS[str(match.lastgroup)]
    if kind is TokenKind.NAME and text.upper() in KEYWORDS:
        return Token(TokenKind.KEYWORD, text.upper(), start)
    if kind is TokenKind.STRING:
        return Token(kind, text[1:-1].replace("''", "'"), start)
    return Token(kind, text, start)


def _no_token(text: str, start: int) -> FilterError:
    if text[start] == "'":
        return FilterError(start, "a string without its end", "close it with ', and write ' inside of it twice")
    if text.startswith("/*", start):
        return FilterError(start, "a comment without its end", "close it with */")
    remedy = "properties are letters, digits, _ and $; strings stand in single quotes; operators are = <> < <= > >="
    return FilterError(start, f"{text[start]!r} has no meaning here", remedy)
