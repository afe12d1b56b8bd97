"""What migrations made is brought back after a test with transactions of its own: sooner than by Django's own flush.

That one truncates each table, which the audit's triggers refuse, and makes permissions and content types anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from unittest.mock import patch

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.test import TransactionTestCase

# Where PostgreSQL keeps the rows of after the migrations.
_BEFORE = "before_tests"


@contextmanager
def flushable_database() -> Iterator[None]:
    """Makes the flush after a test bring back what the migrations made, from a copy."""
    connection.ensure_connection()
    copied = _copied_postgresql if connection.vendor == "postgresql" else _copied_sqlite
    with copied() as restore, patch.object(TransactionTestCase, "_fixture_teardown", lambda _: restore()):
        yield


@contextmanager
def _copied_sqlite() -> Iterator[Callable[[], None]]:
    with closing(sqlite3.connect(":memory:")) as copy:
        connection.connection.backup(copy)

        def restore() -> None:
            connection.ensure_connection()
            copy.backup(connection.connection)

        yield restore


@contextmanager
def _copied_postgresql() -> Iterator[Callable[[], None]]:
    """The role `replica` is spared triggers and foreign keys. To delete a few rows is quicker than to truncate."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        filled = [table for table in tables if _has_rows(cursor, table)]
        cursor.execute(f"CREATE SCHEMA {_BEFORE}")
        for table in filled:
            cursor.execute(f'CREATE TABLE {_BEFORE}."{table}" AS TABLE "{table}"')
    deleting = [f'DELETE FROM "{table}"' for table in tables]  # noqa: S608 - names of ours
    filling = [f'INSERT INTO "{table}" SELECT * FROM {_BEFORE}."{table}"' for table in filled]  # noqa: S608
    statements = "; ".join(["SET LOCAL session_replication_role = replica", *deleting, *filling])

    def restore() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statements)

    yield restore
    # A thread that outlives its test, as those of asynchronous tests do, may have a connection still, and a database
    # that has one is not dropped.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def _has_rows(cursor: CursorWrapper, table: str) -> bool:
    cursor.execute(f'SELECT EXISTS (SELECT FROM "{table}")')  # noqa: S608
    return bool(cursor.fetchone()[0])
