"""What mending changes, for people: body and properties line by line, bounded. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

import msgspec

from mqadmin.deadletters.bodies import hex_dump
from mqadmin.mending.typed_bodies import BodyKind, kind_of

# Comparing takes up to the product of the lines: half a second where all of them differ.
COMPARED_LINES_MAX = 2000
COMPARED_BYTES_MAX = 256 * 1024
# What a person reads.
SHOWN_LINES_MAX = 400
LINE_CHARS_MAX = 400
CONTEXT_LINES = 3


class LineKind(StrEnum):
    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"
    PLACE = "place"


_KINDS = {" ": LineKind.SAME, "-": LineKind.REMOVED, "+": LineKind.ADDED, "@": LineKind.PLACE}


@dataclass(frozen=True, slots=True)
class DiffLine:
    kind: LineKind
    text: str


@dataclass(frozen=True, slots=True)
class BodyDiff:
    """`is_too_large`: the bodies differ and are not compared. `is_cut`: there is more than is shown."""

    lines: tuple[DiffLine, ...] = ()
    is_too_large: bool = False
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class PropertyDiff:
    """`before` or `after` is None where the property is not there."""

    name: str
    before: str | None
    after: str | None


def property_diff(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[PropertyDiff, ...]:
    """Returns those that differ, by name."""
    names = sorted(before.keys() | after.keys())
    return tuple(
        PropertyDiff(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
    )


def body_diff(before: bytes, after: bytes) -> BodyDiff:
    """Returns the lines that differ with some around them: JSON indented, what is no text in hexadecimal."""
    if before == after:
        return BodyDiff()
    if len(before) + len(after) > COMPARED_BYTES_MAX:
        return BodyDiff(is_too_large=True)
    old, new = _lines(before), _lines(after)
    if len(old) + len(new) > COMPARED_LINES_MAX:
        return BodyDiff(is_too_large=True)
    # The first two lines name files.
    found = islice(difflib.unified_diff(old, new, lineterm="", n=CONTEXT_LINES), 2, None)
    lines = [DiffLine(_KINDS[line[0]], _shown(line)) for line in islice(found, SHOWN_LINES_MAX + 1)]
    return BodyDiff(tuple(lines[:SHOWN_LINES_MAX]), is_cut=len(lines) > SHOWN_LINES_MAX)


def _shown(line: str) -> str:
    text = line if line[0] == "@" else line[1:]
    return text if len(text) <= LINE_CHARS_MAX else f"{text[:LINE_CHARS_MAX]}…"


def _lines(body: bytes) -> list[str]:
    match kind_of(body):
        case BodyKind.JSON:
            return msgspec.json.format(body, indent=2).decode().splitlines()
        case BodyKind.TEXT:
            return body.decode().splitlines()
        case BodyKind.BINARY:
            return hex_dump(body).splitlines()
