"""Rows of a list, whoever keeps them: in their order, cut behind a position."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from mqadmin.clusters.selectors.newest_rows import Looked

R = TypeVar("R")


class Rows(Protocol[R]):
    """The rows of a list in their order. A position is plain JSON."""

    def after(self, position: Sequence[Any] | None, size: int) -> list[R]:
        """Returns at most `size` rows behind the position, None for the first ones."""

    def position(self, row: R) -> list[Any]:
        """Returns the position of a row."""

    def total_count(self) -> int | None:
        """Returns how many rows there are; None where counting them costs too much."""


@runtime_checkable
class RowsByLooks(Rows[R], Protocol[R]):
    """Rows of which a page may end before it is full, so that its work is bounded."""

    def look(self, position: Sequence[Any] | None, size: int) -> Looked[R]:
        """Returns at most `size` rows behind the position, and where to go on; None: nowhere."""


def cut(rows: Rows[R], position: Sequence[Any] | None, limit: int) -> tuple[list[R], list[Any] | None]:
    """Returns the page behind a position, and the position of the next one; None where there is none."""
    if isinstance(rows, RowsByLooks):
        looked: Looked[R] = rows.look(position, limit + 1)
        found, place = looked.rows, looked.place
    else:
        found, place = rows.after(position, limit + 1), None
    return found[:limit], rows.position(found[limit - 1]) if len(found) > limit else place


class RowsInMemory(Generic[R]):
    """Rows that a selector returns all together; `key` orders them and is plain JSON."""

    def __init__(self, rows: Iterable[R], key: Callable[[R], list[Any]]) -> None:
        # Anew: a database may order names otherwise than Python compares them.
        self.rows = sorted(rows, key=key)
        self.key = key

    def after(self, position: Sequence[Any] | None, size: int) -> list[R]:
        first = 0 if position is None else bisect_right(self.rows, list(position), key=self.key)
        return self.rows[first : first + size]

    def position(self, row: R) -> list[Any]:
        return self.key(row)

    def total_count(self) -> int:
        return len(self.rows)
