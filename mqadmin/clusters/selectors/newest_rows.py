"""Rows by their moment, the newest first, cut by a cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import Model, QuerySet

from mqadmin.clusters.selectors.newest_first import read_cursor, rows_behind, write_cursor

PAGE_SIZE = 50

M = TypeVar("M", bound=Model)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class NewestRows(Generic[M]):
    """Rows by the moment in `column`, the newest first; a position is (moment, primary key).

    `shared`: a column in which they all have the same, where the database is to use an index that begins with it.
    """

    rows: QuerySet[M]
    column: str
    shared: str = ""

    def in_order(self) -> QuerySet[M]:
        return self._ordered(self.rows)

    def after(self, position: Sequence[Any] | None, size: int) -> list[M]:
        """Returns at most `size` rows behind the position, None for the first ones."""
        rows = self.rows
        if position is not None:
            rows = rows_behind(rows, self.column, *position)
        return list(self._ordered(rows)[:size])

    def _ordered(self, rows: QuerySet[M]) -> QuerySet[M]:
        return rows.order_by(*filter(None, [self.shared]), f"-{self.column}", "-pk")

    def look(self, position: Sequence[Any] | None, size: int) -> Looked[M]:
        """Returns at most `size` rows behind the position, and where to go on."""
        found = self.after(position, size)
        return Looked(found, self.position(found[-1]) if len(found) == size else None)

    def position(self, row: M) -> list[object]:
        """Returns the position of a row, as plain JSON."""
        return [getattr(row, self.column).isoformat(), row.pk]

    def total_count(self) -> None:
        """Not counted: there may be millions."""

    def page(self, before: str, size: int = PAGE_SIZE) -> Page[M]:
        """Returns the rows before a cursor; the first ones where it is "" or garbage."""
        found = self.after(read_cursor(before), size + 1)
        rows = tuple(found[:size])
        older = write_cursor(getattr(rows[-1], self.column), rows[-1].pk) if len(found) > size else ""
        return Page(rows, older)


@dataclass(frozen=True, slots=True)
class Page(Generic[M]):
    """`older` is the cursor of the next page, "" on the last. `is_cut`: it ended before it was full, more may come."""

    rows: tuple[M, ...]
    older: str
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Looked(Generic[R]):
    """What a bounded look found, and the position at which the next one goes on; None where all was looked through."""

    rows: list[R]
    place: list[Any] | None
