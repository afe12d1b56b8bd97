"""Ends queries for which somebody waits, when they take longer than that.

The database itself ends the one that is running: PostgreSQL by its `statement_timeout`, SQLite by a progress handler.
Of many short ones, the first that would begin too late does not begin.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import OperationalError, connection, transaction

# Operations of SQLite's machine between two looks at the clock: less than a millisecond.
_OPERATIONS = 20_000
_SQLITE_INTERRUPTED = 9
_POSTGRESQL_CANCELLED = "57014"

Execute = Callable[[str, Any, bool, dict[str, Any]], Any]


class TookTooLong(Exception):
    """The queries were ended before they had found what was asked for."""


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """Raises TookTooLong where the queries within take longer, of this thread alone. For reading."""
    until_s = time.monotonic() + seconds
    within = _on_postgresql if connection.vendor == "postgresql" else _on_sqlite
    try:
        with within(until_s):
            yield
    except OperationalError as error:
        if not _is_ended(error):
            raise
        raise TookTooLong from error


def _is_ended(error: OperationalError) -> bool:
    cause = error.__cause__
    is_interrupted = getattr(cause, "sqlite_errorcode", None) == _SQLITE_INTERRUPTED
    return is_interrupted or getattr(cause, "sqlstate", None) == _POSTGRESQL_CANCELLED


def _left_s(until_s: float) -> float:
    left_s = until_s - time.monotonic()
    if left_s <= 0:
        raise TookTooLong
    return left_s


@contextmanager
def _on_postgresql(until_s: float) -> Iterator[None]:
    """In a transaction, with which its time-out ends."""

    def execute(execute: Execute, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        # After an error nothing but the way back is taken.
        if connection.connection.info.transaction_status.name != "INERROR":
            limit_ms = max(1, int(_left_s(until_s) * 1000))
            with connection.connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL statement_timeout = {limit_ms}")
        return execute(sql, params, many, context)

    with transaction.atomic():
        with connection.execute_wrapper(execute):
            yield
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout TO DEFAULT")


@contextmanager
def _on_sqlite(until_s: float) -> Iterator[None]:
    def execute(execute: Execute, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        _left_s(until_s)
        return execute(sql, params, many, context)

    connection.ensure_connection()
    raw = connection.connection
    raw.set_progress_handler(lambda: time.monotonic() > until_s, _OPERATIONS)
    try:
        with connection.execute_wrapper(execute):
            yield
    finally:
        raw.set_progress_handler(None, 0)
