"""The index of what can be searched, kept by the database in the transaction that writes the texts.

SQLite      two FTS5 tables without texts of their own beside `SearchText`, one of the words, one of the trigrams of the
            bodies, filled and emptied by triggers
PostgreSQL  GIN indexes: of the words as an array, and of the bodies' trigrams by pg_trgm
otherwise   none, and a search reads all texts: an SQLite without FTS5, or a PostgreSQL whose owner may not create the
            extension; the log says so once per migration

SQLite loses the triggers of a table when a migration makes the table anew, so they are installed after every migration
(`apps.py`). What matches is found newest first, by the number of the row, which grows with the time of indexing. FTS5
says only which trigrams a body has, not that they follow each other: whoever asks compares (`matching_rows.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import DatabaseError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from mqadmin.clusters.models import ID_MAX
from mqadmin.deadletters.models import SearchText

logger = logging.getLogger(__name__)

TABLE = "mq_deadletters_searchtext"

# Without columns that say where in a text something is: they would make it four times as large.
_SQLITE_TABLES = {
    "mq_deadletters_search_words": (
        "CREATE VIRTUAL TABLE mq_deadletters_search_words USING fts5(words, content='mq_deadletters_searchtext', "
        "content_rowid='dead_letter_id', tokenize='unicode61 remove_diacritics 0', detail=none, columnsize=0)",
        "INSERT INTO mq_deadletters_search_words (mq_deadletters_search_words) VALUES ('rebuild')",
    ),
    "mq_deadletters_search_bodies": (
        "CREATE VIRTUAL TABLE mq_deadletters_search_bodies USING fts5(body, content='mq_deadletters_searchtext', "
        "content_rowid='dead_letter_id', tokenize='trigram', detail=none, columnsize=0)",
        "INSERT INTO mq_deadletters_search_bodies (mq_deadletters_search_bodies) VALUES ('rebuild')",
    ),
}
_SQLITE_TRIGGERS = {
    "mq_deadletters_search_insert": (
        "CREATE TRIGGER mq_deadletters_search_insert AFTER INSERT ON mq_deadletters_searchtext BEGIN "
        "INSERT INTO mq_deadletters_search_words (rowid, words) VALUES (NEW.dead_letter_id, NEW.words); "
        "INSERT INTO mq_deadletters_search_bodies (rowid, body) VALUES (NEW.dead_letter_id, NEW.body); END"
    ),
    "mq_deadletters_search_delete": (
        "CREATE TRIGGER mq_deadletters_search_delete AFTER DELETE ON mq_deadletters_searchtext BEGIN "
        "INSERT INTO mq_deadletters_search_words (mq_deadletters_search_words, rowid, words) "
        "VALUES ('delete', OLD.dead_letter_id, OLD.words); "
        "INSERT INTO mq_deadletters_search_bodies (mq_deadletters_search_bodies, rowid, body) "
        "VALUES ('delete', OLD.dead_letter_id, OLD.body); END"
    ),
}
_SQLITE_LOOK_UP = {
    "words": (
        "SELECT rowid FROM mq_deadletters_search_words WHERE mq_deadletters_search_words MATCH %s AND rowid <= %s "
        "ORDER BY rowid DESC LIMIT %s"
    ),
    "bodies": (
        "SELECT rowid FROM mq_deadletters_search_bodies WHERE mq_deadletters_search_bodies MATCH %s AND rowid <= %s "
        "ORDER BY rowid DESC LIMIT %s"
    ),
}
_POSTGRESQL_WORDS = (
    "CREATE INDEX IF NOT EXISTS mq_deadletters_search_words ON mq_deadletters_searchtext "
    "USING gin (string_to_array(words, ' '))",
)
# Of capitals: so Django asks when it looks for a part in any case.
_POSTGRESQL_BODIES = (
    "CREATE EXTENSION IF NOT EXISTS pg_trgm",
    "CREATE INDEX IF NOT EXISTS mq_deadletters_search_bodies ON mq_deadletters_searchtext "
    "USING gin (UPPER(body) gin_trgm_ops)",
)


@dataclass(frozen=True, slots=True)
class LookUp:
    """What is looked up: all `words`, and a part of the body; `marks` are those of the failure or group wanted."""

    words: tuple[str, ...] = ()
    body: str = ""
    marks: tuple[str, ...] = ()


def install(connection: BaseDatabaseWrapper) -> None:
    """Creates what is missing of the index; existing texts get into it."""
    for statements in _missing(connection):
        try:
            with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
        except DatabaseError as error:
            logger.warning("dead letters are searched without an index, reading all: %s", error)
            return


def _missing(connection: BaseDatabaseWrapper) -> list[Sequence[str]]:
    if connection.vendor == "postgresql":
        return [_POSTGRESQL_WORDS, _POSTGRESQL_BODIES]
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_master WHERE name LIKE 'mq_deadletters_search%'")
        there = {name for (name,) in cursor.fetchall()}
    tables = [statement for name, made in _SQLITE_TABLES.items() if name not in there for statement in made]
    # All or none: triggers without the tables would refuse every row.
    return [[*tables, *(made for name, made in _SQLITE_TRIGGERS.items() if name not in there)]]


def matching_ids(wanted: LookUp, below: int | None, size: int) -> list[int]:
    """Returns the numbers of at most `size` dead letters that may match, newest first, all below `below`.

    With words and a body, those that have the one or the other, whichever are few. Of nothing at all, none.
    """
    if not wanted.words and not wanted.body:
        return []
    if connection.vendor == "sqlite" and _has_fts():
        return _matching_on_sqlite(wanted, ID_MAX if below is None else below - 1, size)
    rows = SearchText.objects.all()
    if wanted.words and connection.vendor == "postgresql":
        rows = rows.extra(where=["string_to_array(words, ' ') @> %s"], params=[list(wanted.words)])
    elif wanted.words:
        for word in wanted.words:
            rows = rows.filter(words__contains=f" {word} ")
    if wanted.body:
        rows = rows.filter(body__icontains=wanted.body)
    if below is not None:
        rows = rows.filter(pk__lt=below)
    return list(rows.order_by("-pk").values_list("pk", flat=True)[:size])


def _has_fts() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM sqlite_master WHERE name = 'mq_deadletters_search_bodies'")
        return cursor.fetchone() is not None


def _matching_on_sqlite(wanted: LookUp, highest: int, size: int) -> list[int]:
    if not wanted.body:
        return _look_up("words", wanted.words, highest, size)
    trigrams = [wanted.body[first : first + 3] for first in range(len(wanted.body) - 2)]
    found = _look_up("bodies", [*wanted.marks, *trigrams], highest, size)
    if len(found) < size or not wanted.words:
        return found
    # Most bodies have it; perhaps few have the words.
    by_words = _look_up("words", wanted.words, highest, size)
    return by_words if len(by_words) < size else found


def _look_up(index: str, tokens: Sequence[str], highest: int, size: int) -> list[int]:
    match = " AND ".join('"' + token.replace('"', '""') + '"' for token in dict.fromkeys(tokens))
    with connection.cursor() as cursor:
        cursor.execute(_SQLITE_LOOK_UP[index], [match, highest, size])
        return [row_id for (row_id,) in cursor.fetchall()]
