"""Emptying the test database after a test with transactions of its own: the audit's triggers would refuse it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from django.db import connection
from django.db.backends.base.operations import BaseDatabaseOperations


@contextmanager
def flushable_audit() -> Iterator[None]:
    """Drops the triggers before each flush; the signal after a flush installs them again."""
    from mqadmin.audit import triggers  # Django reads its settings later than this module is imported

    operations = type(connection.ops)
    original = operations.sql_flush

    def sql_flush(self: BaseDatabaseOperations, *args: Any, **options: Any) -> Any:
        triggers.drop(self.connection)
        return original(self, *args, **options)

    with patch.object(operations, "sql_flush", sql_flush):
        yield
