"""Rows by their moment, the newest first: where a page of them ends, as text in an address, and what comes behind."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from django.db.models import Model, Q, QuerySet

M = TypeVar("M", bound=Model)


def write_cursor(at: datetime, row_id: int) -> str:
    """Returns what stands for the place behind that row."""
    return f"{at.isoformat()}_{row_id}"


def read_cursor(cursor: str) -> tuple[datetime, int] | None:
    """Returns (moment, primary key); None for a cursor that is empty or garbage: the list begins anew."""
    text, _, row_id = cursor.rpartition("_")
    try:
        at = datetime.fromisoformat(text)
        return (at, int(row_id)) if at.tzinfo else None
    except ValueError:
        return None


def rows_behind(rows: QuerySet[M], column: str, at: datetime | str, row_id: int) -> QuerySet[M]:
    """Returns the rows behind a place; of equal moments the larger key comes first.

    Databases begin there in the index by the first condition; by the second alone they read all rows before it.
    """
    return rows.filter(Q(**{f"{column}__lt": at}) | Q(pk__lt=row_id), **{f"{column}__lte": at})
