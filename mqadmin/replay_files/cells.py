"""The cells of a row of CSV, as exports write them, and what became of them in a spreadsheet. Pure.

A cell that begins with an apostrophe before a sign that a spreadsheet would take for a formula, or before another
apostrophe, was given it by an export: it is taken away again.
"""

from __future__ import annotations

import re

SEPARATORS = (",", ";", "\t")
# What an export writes an apostrophe before.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "'")
_CELL = {
    separator: re.compile(rf'(?:"((?:[^"]++|"")*+)"|([^"{separator}]*+))({separator}|\Z)') for separator in SEPARATORS
}


class WrongRow(ValueError):
    """A row that is no CSV."""


def guard(text: str) -> str:
    """Returns a cell so that no spreadsheet takes it for a formula; `unguard` takes that back."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def unguard(text: str) -> str:
    """Returns what a cell held before it was exported."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA_STARTS) else text


def cells_of(text: str, separator: str, cells_max: int) -> list[str]:
    """Returns the cells of a row, without what an export put before them. Raises WrongRow."""
    cells, place, pattern = list[str](), 0, _CELL[separator]
    while True:
        found = pattern.match(text, place)
        if found is None or len(cells) >= cells_max:
            raise WrongRow
        quoted, plain, end = found.groups()
        cells.append(unguard(quoted.replace('""', '"') if quoted is not None else plain))
        if not end:
            return cells
        place = found.end()
