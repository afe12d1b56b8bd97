"""Writing many rows at once. Django's own ways build a statement of thousands of expressions, ten times slower.

Owns the statements: rows that exist are updated column by column (SQLite: one prepared statement; PostgreSQL: one
statement over arrays), and rows of which no other writer has any are inserted so. New ones that another writer may have
made go through Django's `bulk_create`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from django.db import connection
from django.db.models import AutoField, Field, ForeignKey, Model

# Names and ids in one statement: SQLite takes 32,766 parameters, and its planner is happy far below.
CHUNK = 500
# Rows in one statement over arrays: some MB at most.
ARRAY_CHUNK = 5_000

M = TypeVar("M", bound=Model)
T = TypeVar("T")


class Change(NamedTuple):
    """One row that exists, and its new values by the field's name."""

    pk: int
    values: Mapping[str, Any]


def upsert(model: type[M], rows: Sequence[M], *, unique: Sequence[str]) -> None:
    """Writes new and changed rows whole. `unique` names a new row: another writer may have been a moment earlier."""
    fields = [
        field.name
        for field in model._meta.concrete_fields
        if not field.primary_key and field.name not in unique and field.attname not in unique
    ]
    if created := [row for row in rows if row.pk is None]:
        model._default_manager.bulk_create(
            created, update_conflicts=True, unique_fields=list(unique), update_fields=fields, batch_size=CHUNK
        )
    update(model, [row for row in rows if row.pk is not None], fields)


def update(model: type[M], rows: Sequence[M], fields: Sequence[str]) -> None:
    """Writes these fields of rows that exist."""
    if rows:
        values_of = attrgetter("pk", *(_field(model, name).attname for name in fields))
        _update_columns(model, fields, [values_of(row) for row in rows])


def write(model: type[Model], changes: Iterable[Change]) -> None:
    """Writes what changed of each row; rows of which the same fields changed are written together."""
    alike: defaultdict[tuple[str, ...], list[tuple[Any, ...]]] = defaultdict(list)
    for pk, values in changes:
        alike[tuple(values)].append((pk, *values.values()))
    for fields, rows in alike.items():
        _update_columns(model, fields, rows)


def insert(model: type[Model], rows: Sequence[Sequence[Any]], *, fields: Sequence[str]) -> None:
    """Writes new rows, each with the values of these fields, in their order; the others have no default in Python."""
    if rows:
        columns_of = [_field(model, name) for name in fields]
        columns = [_column(field, [row[place] for row in rows]) for place, field in enumerate(columns_of)]
        _INSERTS[connection.vendor](model, columns_of, columns)


def chunks(items: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk


def _update_columns(model: type[Model], names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Writes rows of (primary key, value, …)."""
    fields = [_field(model, "pk"), *(_field(model, name) for name in names)]
    columns = [_column(field, [row[place] for row in rows]) for place, field in enumerate(fields)]
    _STATEMENTS[connection.vendor](model, fields, columns)


def _update_by_arrays(model: type[Model], fields: Sequence[Field[Any, Any]], columns: Sequence[list[Any]]) -> None:
    table, names = connection.ops.quote_name(model._meta.db_table), _quoted(fields)
    key, *others = names
    sets = ", ".join(f"{name} = v.{name}" for name in others)
    arrays = ", ".join(f"%s::{_array_type(field)}[]" for field in fields)
    statement = (
        f"UPDATE {table} SET {sets} FROM unnest({arrays}) AS v({', '.join(names)}) WHERE {table}.{key} = v.{key}"  # noqa: S608 - names of columns
    )
    with connection.cursor() as cursor:
        for first in range(0, len(columns[0]), ARRAY_CHUNK):
            cursor.execute(statement, [column[first : first + ARRAY_CHUNK] for column in columns])


def _update_one_by_one(model: type[Model], fields: Sequence[Field[Any, Any]], columns: Sequence[list[Any]]) -> None:
    table, (key, *others) = connection.ops.quote_name(model._meta.db_table), _quoted(fields)
    sets = ", ".join(f"{name} = %s" for name in others)
    with connection.cursor() as cursor:
        cursor.executemany(
            f"UPDATE {table} SET {sets} WHERE {key} = %s",  # noqa: S608 - names of columns
            list(zip(*columns[1:], columns[0], strict=True)),
        )


def _insert_by_arrays(model: type[Model], fields: Sequence[Field[Any, Any]], columns: Sequence[list[Any]]) -> None:
    table, names = connection.ops.quote_name(model._meta.db_table), ", ".join(_quoted(fields))
    arrays = ", ".join(f"%s::{_array_type(field)}[]" for field in fields)
    statement = f"INSERT INTO {table} ({names}) SELECT * FROM unnest({arrays})"  # noqa: S608 - names of columns
    with connection.cursor() as cursor:
        for first in range(0, len(columns[0]), ARRAY_CHUNK):
            cursor.execute(statement, [column[first : first + ARRAY_CHUNK] for column in columns])


def _insert_one_by_one(model: type[Model], fields: Sequence[Field[Any, Any]], columns: Sequence[list[Any]]) -> None:
    table, names = connection.ops.quote_name(model._meta.db_table), ", ".join(_quoted(fields))
    values = ", ".join(["%s"] * len(fields))
    with connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO {table} ({names}) VALUES ({values})",  # noqa: S608 - names of columns
            list(zip(*columns, strict=True)),
        )


# How rows that exist, and new ones, are written, by database.
_STATEMENTS = {"sqlite": _update_one_by_one, "postgresql": _update_by_arrays}
_INSERTS = {"sqlite": _insert_one_by_one, "postgresql": _insert_by_arrays}


def _field(model: type[Model], name: str) -> Field[Any, Any]:
    field = model._meta.pk if name == "pk" else model._meta.get_field(name)
    assert isinstance(field, Field), f"{name} is no column"
    return field


def _quoted(fields: Iterable[Field[Any, Any]]) -> list[str]:
    return [connection.ops.quote_name(field.column or "") for field in fields]


def _array_type(field: Field[Any, Any]) -> str | None:
    return field.rel_db_type(connection) if isinstance(field, AutoField) else field.db_type(connection)


# By the field's type: what its column takes, None aside. A list of one column has values of one Python type.
_CONVERTERS: Mapping[str, type] = {
    "CharField": str,
    "TextField": str,
    "FloatField": float,
    "BinaryField": bytes,
}


def _column(field: Field[Any, Any], values: Iterable[Any]) -> list[Any]:
    """Returns the values as the database takes them."""
    kind = field.get_internal_type()
    if isinstance(field, ForeignKey) or kind.endswith(("IntegerField", "AutoField", "BooleanField")):
        return list(values)
    if kind in _CONVERTERS:
        convert: Callable[[Any], Any] = _CONVERTERS[kind]
        return [None if value is None else convert(value) for value in values]

    def prepared(value: Any) -> Any:
        return field.get_db_prep_save(value, connection)

    if kind == "DateTimeField":
        # Most rows of one observation have the same moments.
        prepared = cache(prepared)
    return [prepared(value) for value in values]
