"""Writing many rows at once. Django's `bulk_update` builds one CASE per field and row, some fifty times slower."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from django.db.models import Model

# Names and ids in one statement: SQLite takes 32,766 parameters, and its planner is happy far below.
CHUNK = 500

M = TypeVar("M", bound=Model)
T = TypeVar("T")


def upsert(model: type[M], rows: Sequence[M], *, unique: Sequence[str]) -> None:
    """Writes new and changed rows whole. `unique` names a new row: another writer may have been a moment earlier."""
    created = [row for row in rows if row.pk is None]
    changed = [row for row in rows if row.pk is not None]
    _write(model, created, unique)
    _write(model, changed, [model._meta.pk.attname])


def update(model: type[M], rows: Sequence[M], fields: Sequence[str]) -> None:
    """Writes these fields of rows that exist."""
    if rows:
        model._default_manager.bulk_create(
            rows, update_conflicts=True, unique_fields=[model._meta.pk.attname], update_fields=fields, batch_size=CHUNK
        )


def _write(model: type[M], rows: Sequence[M], unique: Sequence[str]) -> None:
    if not rows:
        return
    fields = [
        field.name
        for field in model._meta.concrete_fields
        if not field.primary_key and field.name not in unique and field.attname not in unique
    ]
    model._default_manager.bulk_create(
        rows, update_conflicts=True, unique_fields=list(unique), update_fields=fields, batch_size=CHUNK
    )


def chunks(items: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk
