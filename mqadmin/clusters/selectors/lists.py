"""One page of a list: filtered, sorted and cut by the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from django.db.models import F, Model, QuerySet

from mqadmin.clusters.models import Cluster
from mqadmin.clusters.ordering import largest_first

PAGE_SIZE = 40
# These are always known; saying so lets the index of the list serve.
NEVER_NULL = ("name", "verdict_rank")

M = TypeVar("M", bound=Model)
M_co = TypeVar("M_co", bound=Model, covariant=True)


@dataclass(frozen=True, slots=True)
class ListPage(Generic[M_co]):
    """One page of a list that the database filtered, sorted and cut. `number` counts from 1."""

    now: datetime
    cluster: Cluster
    rows: tuple[M_co, ...]
    number: int
    page_count: int
    total_count: int
    sort: str
    is_descending: bool
    filter: str

    @property
    def has_previous(self) -> bool:
        return self.number > 1

    @property
    def has_next(self) -> bool:
        return self.number < self.page_count


def sorted_by(found: QuerySet[M], column: str, *, is_descending: bool) -> QuerySet[M]:
    """Sorts rows; those whose figure is not known come last either way, the name decides among equals."""
    if column in NEVER_NULL:
        return found.order_by(f"-{column}" if is_descending else column, "name")
    if is_descending:
        return found.order_by(largest_first(column), "name")
    return found.order_by(F(column).asc(nulls_last=True), "name")


def place_of(page: int, total: int) -> tuple[int, int, slice]:
    """Returns the number of the page (the nearest that exists), how many pages, and which of `total` rows are on it."""
    page_count = max(1, -(-total // PAGE_SIZE))
    number = min(max(page, 1), page_count)
    first = (number - 1) * PAGE_SIZE
    return number, page_count, slice(first, first + PAGE_SIZE)
