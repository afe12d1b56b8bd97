"""Writes the words of dead letters that are indexed already, as migrations do that make more of them searchable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.apps.registry import Apps
from django.db import connection, transaction

ROWS_AT_ONCE = 1000
_SET_WORDS = "UPDATE mq_deadletters_searchtext SET words = %s WHERE dead_letter_id = %s"
# SQLite's index of words has no trigger for rows that are updated; that of bodies has nothing to do here.
_SQLITE_INDEX = "mq_deadletters_search_words"
_SQLITE_TAKE_OUT = (
    "INSERT INTO mq_deadletters_search_words (mq_deadletters_search_words, rowid, words) VALUES ('delete', %s, %s)"
)
_SQLITE_PUT_IN = "INSERT INTO mq_deadletters_search_words (rowid, words) VALUES (%s, %s)"


def rewrite_words(apps: Apps, related: str, words_of: Callable[[Any], str]) -> None:
    """Writes `words_of(row)` into each row of the texts that has others; `related` is read along.

    Bodies are neither read nor written. Each ROWS_AT_ONCE are one transaction: where it was stopped, it goes on.
    """
    texts = apps.get_model("mq_deadletters", "SearchText")
    has_index = connection.vendor == "sqlite" and _SQLITE_INDEX in connection.introspection.table_names()
    last = 0
    while True:
        with transaction.atomic():
            rows = list(
                texts.objects.filter(pk__gt=last)
                # The index may write the words of one anew meanwhile, when its reason comes: that waits, and is the last.
                .select_for_update(of=("self",))
                .select_related(related)
                .defer("body", *(["dead_letter__kept__body"] if related.endswith("kept") else []))
                .order_by("pk")[:ROWS_AT_ONCE]
            )
            told = [(row.pk, row.words, words_of(row)) for row in rows]
            _change([one for one in told if one[1] != one[2]], has_index=has_index)
        if len(rows) < ROWS_AT_ONCE:
            return
        last = rows[-1].pk


def _change(changed: list[tuple[int, str, str]], *, has_index: bool) -> None:
    """Writes the words of rows: number, words until now, words from now on."""
    if not changed:
        return
    with connection.cursor() as cursor:
        if has_index:
            cursor.executemany(_SQLITE_TAKE_OUT, [(pk, before) for pk, before, _ in changed])
        cursor.executemany(_SET_WORDS, [(after, pk) for pk, _, after in changed])
        if has_index:
            cursor.executemany(_SQLITE_PUT_IN, [(pk, after) for pk, _, after in changed])
