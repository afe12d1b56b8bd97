"""Exports: a whole list as CSV or JSON Lines, read and sent in chunks, so that its length costs no memory.

The rows are read one chunk after the other, not at one moment. A figure is two columns in CSV: the value, and until
when it is true. Cells that a spreadsheet would take for a formula, and those that begin with an apostrophe, are
given an apostrophe, which reading a file takes away again (`replay_files/cells.py`).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from django.utils.text import get_valid_filename
from rest_framework import serializers
from rest_framework.renderers import BaseRenderer, JSONRenderer

from mqadmin.api.rows import Rows
from mqadmin.api.serializers.figures import FigureField
from mqadmin.replay_files.cells import guard

CHUNK_ROWS = 500


class CsvRenderer(BaseRenderer):
    """Names the format; `export` writes it."""

    media_type = "text/csv"
    format = "csv"


class JsonLinesRenderer(BaseRenderer):
    """Names the format; `export` writes it."""

    media_type = "application/jsonl"
    format = "jsonl"


Row = type[serializers.Serializer[Any]]
Documents = Iterable[Mapping[str, Any]]
Writer = Callable[[Documents], bytes]


def export(
    rows: Rows[Any], row: Row, renderer: type[BaseRenderer], name: str, chunk_rows: int = CHUNK_ROWS
) -> StreamingHttpResponse:
    """Returns the answer that sends all rows, as the file `name` with the format's ending."""
    columns = _columns(row)
    write: Writer = _csv_lines if renderer is CsvRenderer else _json_lines
    head = _csv_table([columns]) if renderer is CsvRenderer else b""

    def read(position: Sequence[Any] | None) -> tuple[bytes, Sequence[Any] | None]:
        found = rows.after(position, chunk_rows)
        text = write(row(found, many=True).data) if found else b""
        return text, rows.position(found[-1]) if len(found) == chunk_rows else None

    async def chunks() -> AsyncIterator[bytes]:
        yield head
        position: Sequence[Any] | None = None
        while True:
            text, position = await sync_to_async(read)(position)
            yield text
            if position is None:
                return

    answer = StreamingHttpResponse(chunks(), content_type=f"{renderer.media_type}; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{get_valid_filename(name)}.{renderer.format}"'
    return answer


EXPORTS: Mapping[str, type[BaseRenderer]] = {one.format: one for one in (CsvRenderer, JsonLinesRenderer)}


def _columns(row: Row) -> list[str]:
    names: list[str] = []
    for name, field in row().fields.items():
        names += [name, f"{name}_seen_at"] if isinstance(field, FigureField) else [name]
    return names


def _json_lines(documents: Documents) -> bytes:
    renderer = JSONRenderer()
    return b"".join(renderer.render(document) + b"\n" for document in documents)


def _csv_lines(documents: Documents) -> bytes:
    return _csv_table([list(_cells(document)) for document in documents])


def _cells(document: Mapping[str, Any]) -> list[str]:
    cells: list[str] = []
    for value in document.values():
        if isinstance(value, dict) and value.keys() == {"value", "seen_at"}:
            cells += [_cell(value["value"]), _cell(value["seen_at"])]
        else:
            cells.append(_cell(value))
    return cells


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return guard(value)
        case dict() | list():
            return json.dumps(value, ensure_ascii=False, default=str)
        case _:
            return str(value)


def _csv_table(lines: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(lines)
    return text.getvalue().encode()
