"""Rows of a list in their order, cut behind a position: what a page number is to people, a cursor is to programs.

A position is the value of the sorted column, and the name, which decides among equals. Rows whose value is null come
last either way, as `sorted_by` has them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db.models import Model, Q, QuerySet
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.clusters.selectors.lists import NEVER_NULL, ListPage, place_of, sorted_by

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class SortedRows(Generic[M]):
    """Rows that the database filtered and sorts. `complete` sets what rows show of other tables.

    `counts` are there where rows are sorted by how many rows of another table have their names (absent: 0), in the
    attribute `column`: counted for all names in one query, they are sorted here. Row by row a database takes half a
    second for ten thousand.
    """

    rows: QuerySet[M]
    column: str
    is_descending: bool
    complete: Callable[[Sequence[M]], None] = lambda _rows: None
    counts: Callable[[], Mapping[str, int]] | None = None

    @property
    def ordered(self) -> QuerySet[M]:
        """The rows in their order."""
        return sorted_by(self.rows, self.column, is_descending=self.is_descending)

    def after(self, position: Sequence[Any] | None, size: int) -> list[M]:
        """Returns at most `size` rows behind the position, None for the first ones."""
        if self.counts is not None:
            keys = self._keys(self.counts())
            first = 0 if position is None else bisect_right(keys, (self._sign * position[0], position[1]))
            cut = self._of_keys(keys[first : first + size])
        else:
            found = self.ordered if position is None else self.ordered.filter(self._behind(*position))
            cut = list(found[:size])
        self.complete(cut)
        return cut

    def position(self, row: M) -> list[Any]:
        """Returns the position of a row, as plain JSON."""
        value = getattr(row, self.column)
        return [value.isoformat() if isinstance(value, datetime) else value, getattr(row, "name")]  # noqa: B009

    def page(self, cluster: Cluster, number: int, *, sort: str, is_descending: bool, filter: str) -> ListPage[M]:
        """Returns the page of that number (the nearest that exists), with what the viewer chose."""
        keys = self._keys(self.counts()) if self.counts is not None else None
        total = self.rows.count() if keys is None else len(keys)
        number, page_count, cut = place_of(number, total)
        rows = list(self.ordered[cut]) if keys is None else self._of_keys(keys[cut])
        self.complete(rows)
        return ListPage(
            now=timezone.now(),
            cluster=cluster,
            rows=tuple(rows),
            number=number,
            page_count=page_count,
            total_count=total,
            sort=sort,
            is_descending=is_descending,
            filter=filter,
        )

    def total_count(self) -> int:
        """Returns how many rows there are."""
        return self.rows.count()

    @property
    def _sign(self) -> int:
        return -1 if self.is_descending else 1

    def _keys(self, counts: Mapping[str, int]) -> list[tuple[int, str]]:
        """Returns count (negative where the largest comes first) and name of each row, in order."""
        names = self.rows.values_list("name", flat=True)
        return sorted((self._sign * counts.get(name, 0), name) for name in names)

    def _of_keys(self, keys: Sequence[tuple[int, str]]) -> list[M]:
        by_name = {getattr(row, "name"): row for row in self.rows.filter(name__in=[name for _, name in keys])}  # noqa: B009
        found = []
        for count, name in keys:
            # A row may have gone since its name was read.
            if (row := by_name.get(name)) is not None:
                setattr(row, self.column, self._sign * count)
                found.append(row)
        return found

    def _behind(self, value: Any, name: str) -> Q:
        beyond = "lt" if self.is_descending else "gt"
        if self.column == "name":
            return Q(**{f"name__{beyond}": name})
        if value is None:
            return Q(**{f"{self.column}__isnull": True}, name__gt=name)
        behind = Q(**{f"{self.column}__{beyond}": value}) | Q(**{self.column: value}, name__gt=name)
        return behind if self.column in NEVER_NULL else behind | Q(**{f"{self.column}__isnull": True})


Narrowing = Callable[[Cluster, SortedRows[M]], SortedRows[M]]
