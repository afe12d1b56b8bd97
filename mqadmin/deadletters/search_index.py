"""The index of what can be searched, kept by the database in the transaction that writes the texts.

SQLite      two FTS5 tables without texts of their own beside `SearchText`, one of the words, one of the trigrams of the
            bodies, filled and emptied by triggers
PostgreSQL  GIN indexes: of the words as an array, and of the bodies' trigrams by pg_trgm
otherwise   none, and a search reads all texts: an SQLite without FTS5, or a PostgreSQL whose owner may not create the
            extension; the log says so once per migration

SQLite loses the triggers of a table when a migration makes the table anew, so they are installed after every migration
(`apps.py`). What matches is found newest first, by the number of the row, which grows with the time of indexing. FTS5
says only which trigrams a body has, not that they follow each other: whoever asks compares (`matching_rows.py`).

FTS5 reads its lists in that order. GIN has none: PostgreSQL would fetch and sort all that match. So it is asked for the
newest rows first, and for more and more of the older ones until there are enough: a text that many have is found among
the first, one that few have costs a few look-ups.
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
SQLITE_TABLES = {
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
SQLITE_TRIGGERS = {
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
_POSTGRESQL_NEWEST = "SELECT max(dead_letter_id) FROM mq_deadletters_searchtext"
# The planner takes the comparing of words for as cheap as that of numbers, and would read whole windows along the
# primary key; without these ways it puts both indexes together. The sum keeps it from reading in the order of the key.
_POSTGRESQL_BOTH_INDEXES = "SET LOCAL enable_indexscan = off; SET LOCAL enable_seqscan = off"
_POSTGRESQL_AS_BEFORE = "SET LOCAL enable_indexscan = on; SET LOCAL enable_seqscan = on"
_POSTGRESQL_LOOK_UP = (
    "SELECT dead_letter_id FROM mq_deadletters_searchtext WHERE {texts} AND dead_letter_id > %s "
    "AND dead_letter_id <= %s ORDER BY dead_letter_id + 0 DESC LIMIT %s"
)
_POSTGRESQL_HAS_WORDS = "string_to_array(words, ' ') @> %s"
_POSTGRESQL_HAS_BODY = "UPPER(body) LIKE UPPER(%s)"
# Numbers that are looked at first, and by how much the next time reaches further.
_WINDOW = 4096
_WINDOW_GROWTH = 4
# Of capitals: in any case.
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
    tables = [statement for name, made in SQLITE_TABLES.items() if name not in there for statement in made]
    # All or none: triggers without the tables would refuse every row.
    return [[*tables, *(made for name, made in SQLITE_TRIGGERS.items() if name not in there)]]


def matching_ids(wanted: LookUp, below: int | None, size: int) -> list[int]:
    """Returns the numbers of at most `size` dead letters that may match, newest first, all below `below`.

    With words and a body, those that have the one or the other, whichever are few. Of nothing at all, none.
    """
    if not wanted.words and not wanted.body:
        return []
    if connection.vendor == "sqlite" and _has_fts():
        return _matching_on_sqlite(wanted, ID_MAX if below is None else below - 1, size)
    if connection.vendor == "postgresql":
        return _matching_on_postgresql(wanted, below, size)
    rows = SearchText.objects.all()
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


def _matching_on_postgresql(wanted: LookUp, below: int | None, size: int) -> list[int]:
    texts: dict[str, str | list[str]] = {}
    if wanted.words:
        texts[_POSTGRESQL_HAS_WORDS] = list(wanted.words)
    if wanted.body:
        texts[_POSTGRESQL_HAS_BODY] = f"%{connection.ops.prep_for_like_query(wanted.body)}%"
    statement = _POSTGRESQL_LOOK_UP.format(texts=" AND ".join(texts))
    found: list[int] = []
    with transaction.atomic(), connection.cursor() as cursor:
        if below is None:
            cursor.execute(_POSTGRESQL_NEWEST)
            (newest,) = cursor.fetchone()
            below = (newest or 0) + 1
        cursor.execute(_POSTGRESQL_BOTH_INDEXES)
        window = _WINDOW
        while below > 1 and len(found) < size:
            lowest = max(0, below - 1 - window)
            cursor.execute(statement, [*texts.values(), lowest, below - 1, size - len(found)])
            found += [row_id for (row_id,) in cursor.fetchall()]
            below, window = lowest + 1, window * _WINDOW_GROWTH
        cursor.execute(_POSTGRESQL_AS_BEFORE)
    return found


def _look_up(index: str, tokens: Sequence[str], highest: int, size: int) -> list[int]:
    match = " AND ".join('"' + token.replace('"', '""') + '"' for token in dict.fromkeys(tokens))
    with connection.cursor() as cursor:
        cursor.execute(_SQLITE_LOOK_UP[index], [match, highest, size])
        return [row_id for (row_id,) in cursor.fetchall()]
