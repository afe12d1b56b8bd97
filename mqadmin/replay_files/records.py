"""Cuts the bytes of a file into records, as they come: a line of JSON Lines, a row of CSV. Pure.

A record that is longer than what is allowed is said to be too long, and its bytes are let go; so one never costs more
memory than one record. A quotation mark that is never closed takes what follows into its row, up to that length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mqadmin.replay_files.limits import LINE_BYTES_MAX


@dataclass(frozen=True, slots=True)
class Record:
    """The bytes from the line `first` to the line `last`, counted from 1, without the line's end.

    None: it was too long, or, with `is_open`, its quotation mark was not closed.
    """

    first: int
    last: int
    content: bytes | None
    is_open: bool = False


def lines(chunks: Iterable[bytes], bytes_max: int = LINE_BYTES_MAX) -> Iterator[Record]:
    """Yields the lines that are not blank."""
    for line in _all_lines(chunks, bytes_max):
        if line.content is None:
            yield line
        elif content := line.content.strip():
            yield Record(line.first, line.last, content)


def rows(chunks: Iterable[bytes], bytes_max: int = LINE_BYTES_MAX) -> Iterator[Record]:
    """Yields the rows of CSV: lines, or several where a cell in quotation marks goes over their ends."""
    first, last, parts, size, quotes = 0, 0, list[bytes](), 0, 0
    for line in _all_lines(chunks, bytes_max):
        last = line.last
        first = first or line.first
        if line.content is None or size + len(line.content) > bytes_max:
            yield Record(first, last, None, is_open=bool(parts))
            first, parts, size, quotes = 0, [], 0, 0
            continue
        parts.append(line.content)
        size += len(line.content) + 1
        quotes += line.content.count(b'"')
        if quotes % 2:
            continue
        content = b"\n".join(parts).removesuffix(b"\r")
        if content.strip():
            yield Record(first, last, content)
        first, parts, size, quotes = 0, [], 0, 0
    if parts:
        yield Record(first, last, None, is_open=True)


def _all_lines(chunks: Iterable[bytes], bytes_max: int) -> Iterator[Record]:
    """Yields all lines, blank ones included, with the carriage returns that cells may have."""
    number, parts, size = 1, list[bytes](), 0
    for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            size += len(piece)
            yield Record(number, number, b"".join([*parts, piece]) if size <= bytes_max else None)
            number, parts, size = number + 1, [], 0
        size += len(rest)
        parts = [*parts, rest] if size <= bytes_max else []
    if size:
        yield Record(number, number, b"".join(parts) if size <= bytes_max else None)
