"""Emptying the test database after a test with transactions of its own: the audit's triggers would refuse it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from unittest.mock import patch

from django.db import connection
from django.db.backends.base.operations import BaseDatabaseOperations
from django.test import TransactionTestCase


@contextmanager
def flushable_database() -> Iterator[None]:
    """Makes the flush after a test bring back what the migrations made: on SQLite quickly, from a copy."""
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        with closing(sqlite3.connect(":memory:")) as copy:
            connection.connection.backup(copy)

            def restore(self: TransactionTestCase) -> None:
                connection.ensure_connection()
                copy.backup(connection.connection)

            with patch.object(TransactionTestCase, "_fixture_teardown", restore):
                yield
    else:
        with _without_triggers():
            yield


@contextmanager
def _without_triggers() -> Iterator[None]:
    """Drops the triggers before each flush; the signal after a flush installs them again."""
    from mqadmin.audit import triggers  # Django reads its settings later than this module is imported

    operations = type(connection.ops)
    original = operations.sql_flush

    def sql_flush(self: BaseDatabaseOperations, *args: Any, **options: Any) -> Any:
        triggers.drop(self.connection)
        return original(self, *args, **options)

    with patch.object(operations, "sql_flush", sql_flush):
        yield
