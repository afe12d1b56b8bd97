"""Plans of queries over tables of a few rows."""

from __future__ import annotations

from django.db import connection


def prefer_indexes() -> None:
    """Has PostgreSQL use an index wherever one serves, until the transaction ends; SQLite does without."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_sort = off")
            cursor.execute("SET LOCAL enable_bitmapscan = off")
