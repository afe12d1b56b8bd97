"""The index of what can be searched, kept by the database in the transaction that writes the texts.

SQLite      two FTS5 tables without texts of their own beside `SearchText`, one of the words, one of the trigrams of the
            bodies, filled and emptied by triggers
PostgreSQL  two GIN indexes: of the words, each with the range of numbers that its row is in, and of the bodies'
            trigrams by pg_trgm, beside that range by btree_gin
otherwise   none, and a search reads all texts: an SQLite without FTS5, or a PostgreSQL whose owner may not create the
            extensions; the log says so once per migration

SQLite loses the triggers of a table when a migration makes the table anew, so they are installed after every migration
(`apps.py`). What matches is found newest first, by the number of the row, which grows with the time of indexing. FTS5
says only which trigrams a body has, not that they follow each other: whoever asks compares (`matching_rows.py`).

FTS5 reads its lists in that order. GIN has none: PostgreSQL would fetch and sort all that match, a million of a word
that many have. So it is asked for one range after the other, the newest first, until there are enough. Of each it reads
only that part of the lists, which costs a tenth of a millisecond where there is nothing; ten million are 153 ranges.
The newest rows are read and compared before that: of a text that most have, they are enough.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

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
# 65,536 numbers. Of smaller ones there are more to look into; of larger ones, more is fetched of a text that all have.
_RANGE_BITS = 16
_POSTGRESQL_RANGE = f"(dead_letter_id >> {_RANGE_BITS})"
# "152:paid" of "paid" in the range 152. Words need no list of all rows of a range, which would cost most of a look-up.
_POSTGRESQL_WORDS = (
    f"string_to_array({_POSTGRESQL_RANGE}::text || ':' || "
    f"replace(btrim(words), ' ', ' ' || {_POSTGRESQL_RANGE}::text || ':'), ' ')"
)
# New rows go into the lists at once: those that wait for that, as is usual, would be read once for each range.
_POSTGRESQL_INDEXES = (
    (
        "CREATE INDEX IF NOT EXISTS mq_deadletters_search_words_by_range ON mq_deadletters_searchtext "
        f"USING gin ({_POSTGRESQL_WORDS}) WITH (fastupdate = off)",
    ),
    # Of capitals: in any case.
    (
        "CREATE EXTENSION IF NOT EXISTS btree_gin",
        "CREATE EXTENSION IF NOT EXISTS pg_trgm",
        "CREATE INDEX IF NOT EXISTS mq_deadletters_search_bodies_by_range ON mq_deadletters_searchtext "
        f"USING gin ({_POSTGRESQL_RANGE}, UPPER(body) gin_trgm_ops) WITH (fastupdate = off)",
    ),
)
# Of all rows at once, as they were made first.
_POSTGRESQL_REPLACED = ("DROP INDEX IF EXISTS mq_deadletters_search_words, mq_deadletters_search_bodies",)
_POSTGRESQL_HAS_BODY = "UPPER(body) LIKE UPPER(%s)"
_POSTGRESQL_NEWEST = "SELECT max(dead_letter_id) FROM mq_deadletters_searchtext"
# Rows that are read and compared before an index is asked: with words, for each one wanted; with a body alone.
_NEWEST_COUNT = 2
_NEWEST_BODIES = 4096
# OFFSET 0 keeps the planner from looking the texts up in the index, of all rows.
_POSTGRESQL_AMONG_NEWEST = (
    "SELECT dead_letter_id FROM (SELECT * FROM mq_deadletters_searchtext WHERE dead_letter_id > %s "
    "AND dead_letter_id <= %s OFFSET 0) AS newest WHERE {texts} ORDER BY dead_letter_id DESC LIMIT %s"
)
# In no order, which is quicker than by ranges: a part of a body has many trigrams, each of which many others have.
_POSTGRESQL_FEW = (
    "SELECT dead_letter_id FROM mq_deadletters_searchtext WHERE {texts} AND dead_letter_id + 0 <= %s LIMIT %s"
)
_FEW = 1000
# A range after the other, until the last LIMIT is reached. The sums keep the planner from the primary key.
_POSTGRESQL_BY_RANGE = (
    "SELECT found.dead_letter_id FROM generate_series(%s::bigint, 0::bigint, -1::bigint) AS number CROSS JOIN LATERAL ("
    "SELECT dead_letter_id FROM mq_deadletters_searchtext WHERE {texts} "
    "AND dead_letter_id + 0 <= %s ORDER BY dead_letter_id + 0 DESC LIMIT %s) AS found LIMIT %s"
)
_HAS_SQLITE = "SELECT count(*) FROM sqlite_master WHERE name = 'mq_deadletters_search_bodies'"
_HAS_POSTGRESQL = (
    "SELECT bool_and(to_regclass('mq_deadletters_search_' || name || '_by_range') IS NOT NULL) "
    "FROM unnest(%s::text[]) AS name"
)
# The planner takes the comparing of texts for cheap, and would read rows for it. Where it expects that all ranges are
# read, it would compile the query and start processes for it.
_POSTGRESQL_BY_INDEXES = (
    "SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off; "
    "SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL jit = off"
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
        return [*_POSTGRESQL_INDEXES, _POSTGRESQL_REPLACED]
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
    if _has_index(wanted):
        on_database = _matching_on_sqlite if connection.vendor == "sqlite" else _matching_on_postgresql
        return on_database(wanted, ID_MAX if below is None else below - 1, size)
    rows = SearchText.objects.all()
    for word in wanted.words:
        rows = rows.filter(words__contains=f" {word} ")
    if wanted.body:
        rows = rows.filter(body__icontains=wanted.body)
    if below is not None:
        rows = rows.filter(pk__lt=below)
    return list(rows.order_by("-pk").values_list("pk", flat=True)[:size])


def _has_index(wanted: LookUp) -> bool:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(_HAS_SQLITE)
        elif connection.vendor == "postgresql":
            needed = {"words": wanted.words, "bodies": wanted.body}
            cursor.execute(_HAS_POSTGRESQL, [[name for name, texts in needed.items() if texts]])
        else:
            return False
        return bool(cursor.fetchone()[0])


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


def _matching_on_postgresql(wanted: LookUp, highest: int, size: int) -> list[int]:
    pattern = f"%{connection.ops.prep_for_like_query(wanted.body)}%"
    # Condition and its values: of a row by itself, and of a row in the range `number`.
    by_itself: list[tuple[str, list[Any]]] = []
    in_range: list[tuple[str, list[Any]]] = []
    if wanted.words:
        words = list(wanted.words)
        by_itself.append(("string_to_array(words, ' ') @> %s", [words]))
        in_range.append(
            (
                f"{_POSTGRESQL_WORDS} @> ARRAY[{', '.join(['number || %s'] * len(words))}]",
                [f":{word}" for word in words],
            )
        )
    if wanted.body:
        by_itself.append((_POSTGRESQL_HAS_BODY, [pattern]))
        in_range.append((f"{_POSTGRESQL_RANGE} = number AND {_POSTGRESQL_HAS_BODY}", [pattern]))
    with connection.cursor() as cursor:
        cursor.execute(_POSTGRESQL_NEWEST)
        (newest,) = cursor.fetchone()
        highest = min(highest, newest or 0)
        older = highest - (_NEWEST_COUNT * size if wanted.words else _NEWEST_BODIES)
        texts, values = _joined(by_itself)
        cursor.execute(_POSTGRESQL_AMONG_NEWEST.format(texts=texts), [older, highest, *values, size])
        found = [row_id for (row_id,) in cursor.fetchall()]
    if len(found) == size or older <= 0:
        return found
    left = size - len(found)
    texts, values = _joined(in_range)
    with _planned_by_indexes() as cursor:
        if not wanted.words:
            cursor.execute(_POSTGRESQL_FEW.format(texts=_POSTGRESQL_HAS_BODY), [pattern, older, _FEW])
            few = sorted((row_id for (row_id,) in cursor.fetchall()), reverse=True)
            if len(few) < _FEW:
                return found + few[:left]
        cursor.execute(_POSTGRESQL_BY_RANGE.format(texts=texts), [older >> _RANGE_BITS, *values, older, left, left])
        return found + [row_id for (row_id,) in cursor.fetchall()]


def _joined(conditions: Sequence[tuple[str, list[Any]]]) -> tuple[str, list[Any]]:
    return " AND ".join(text for text, _ in conditions), [value for _, values in conditions for value in values]


@contextmanager
def _planned_by_indexes() -> Iterator[Any]:
    """Gives a cursor whose queries use the indexes; a transaction around it plans as before afterwards."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_POSTGRESQL_BY_INDEXES)
        yield cursor
        # Takes the settings back; nothing was written.
        transaction.set_rollback(True)


def _look_up(index: str, tokens: Sequence[str], highest: int, size: int) -> list[int]:
    match = " AND ".join('"' + token.replace('"', '""') + '"' for token in dict.fromkeys(tokens))
    with connection.cursor() as cursor:
        cursor.execute(_SQLITE_LOOK_UP[index], [match, highest, size])
        return [row_id for (row_id,) in cursor.fetchall()]
