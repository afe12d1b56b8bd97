"""Rows of a list in their order, cut behind a position: what a page number is to people, a cursor is to programs.

A position is the value of the sorted column, and the name, which decides among equals. Rows whose value is null come
last either way, as `sorted_by` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db.models import Model, Q, QuerySet
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.clusters.selectors.lists import NEVER_NULL, ListPage, page_of, sorted_by

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class SortedRows(Generic[M]):
    """Rows that the database filtered and sorts. `complete` sets what rows show of other tables."""

    rows: QuerySet[M]
    column: str
    is_descending: bool
    complete: Callable[[Sequence[M]], None] = lambda _rows: None

    @property
    def ordered(self) -> QuerySet[M]:
        """The rows in their order."""
        return sorted_by(self.rows, self.column, is_descending=self.is_descending)

    def after(self, position: Sequence[Any] | None, size: int) -> list[M]:
        """Returns at most `size` rows behind the position, None for the first ones."""
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
        rows, number, page_count, total = page_of(self.ordered, number)
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

    def _behind(self, value: Any, name: str) -> Q:
        beyond = "lt" if self.is_descending else "gt"
        if self.column == "name":
            return Q(**{f"name__{beyond}": name})
        if value is None:
            return Q(**{f"{self.column}__isnull": True}, name__gt=name)
        behind = Q(**{f"{self.column}__{beyond}": value}) | Q(**{self.column: value}, name__gt=name)
        return behind if self.column in NEVER_NULL else behind | Q(**{f"{self.column}__isnull": True})


Narrowing = Callable[[Cluster, SortedRows[M]], SortedRows[M]]
