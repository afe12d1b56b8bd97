"""Dead letters in any number, made in bulk: what is measured is reading them, not how they came.

Like an installation of some years: 200 groups of very different sizes, 60 origin topics, 20 tags, some 2,000 failures,
500 members, JSON bodies of about 500 bytes, a key of its own and one of a customer each, 80 days. What is hard on an
index is among them:

- `orders-settlement` has a tenth of all, and nothing else died of its one failure: a million of ten
- `legacy-import` had its only incident in the oldest quarter, where it has four tenths of what died: many, none of
  them new; so have the words `LedgerClosed` and, of bodies, `ledger-2019`
- `rare-tag` and, of bodies, `needle in it` are had by one of 50,000; `lost-topic` by 50
- one of 50 is archived; a second cluster, `staging`, has 2,000, the first that were indexed

SQLite gets rows by `executemany`, PostgreSQL by COPY, both without their indexes, which are made afterwards.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate, islice
from typing import Any
from uuid import uuid4

from django.db import connection

from bench.dead_letter_values import (
    ATTEMPTS,
    BIG_GROUP,
    CLASSES,
    DEAD_COLUMNS,
    LOST_TOPIC,
    OLD_GROUP,
    TEXTS,
    WORDS,
    Kind,
    Row,
    kind_of,
    row,
)
from mqadmin.clusters.bulk import Change, write
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters import search_index
from mqadmin.deadletters.models import DeadLetter, DeadLetterQueue, Failure, FailureHour, KeptMessage, SearchText

GROUP_COUNT = 200
TOPIC_COUNT = 60
TAG_COUNT = 20
STAGING_COUNT = 2_000
DAYS = 80
CHUNK = 20_000


@dataclass(slots=True)
class Filled:
    """What was made, for searches that find something."""

    cluster: Cluster
    staging: Cluster
    count: int
    seconds: float = 0.0
    index_seconds: float = 0.0
    groups: list[str] = field(default_factory=list)


def fill(cluster: Cluster, staging: Cluster, count: int, now: datetime, *, is_one_group: bool = False) -> Filled:
    """Makes `count` dead letters of `cluster`, all of the big group where that is wanted, and those of `staging`."""
    choice = random.Random(7)
    filled = Filled(cluster, staging, count)
    began = time.monotonic()
    kinds, old, lost = _kinds(cluster, now)
    filled.groups = sorted({kind.group for kind in kinds})
    (elsewhere,) = _make_kinds(staging, [(BIG_GROUP, "orders", "paid", CLASSES[0], TEXTS[0])], now)
    # Few failures have most; the first, of the big group, has a ninth of what the others have together.
    others = [1 / (10 + place) for place in range(1, len(kinds))]
    weights = list(accumulate([sum(others) / 9, *others]))
    statements = _without_indexes()
    spread_s = DAYS * 86_400
    # One after the other, as the index numbers them; cluster by cluster.
    first_at = now - timedelta(days=DAYS)
    made: Counter[tuple[int, int]] = Counter()
    rows: Iterator[Row] = (
        row(choice, staging.pk, elsewhere, number, number, first_at) for number in range(1, STAGING_COUNT + 1)
    )
    _write(rows, made)
    picked = choice.choices

    def of_cluster() -> Iterator[Row]:
        for number in range(count):
            at = first_at + timedelta(seconds=spread_s * number / count)
            if is_one_group:
                kind = kinds[0]
            elif number < count // 4 and choice.random() < 0.4:
                kind = old
            elif number % (count // 50 or 1) == 3:
                kind = lost
            else:
                (kind,) = picked(kinds, cum_weights=weights)
            yield row(choice, cluster.pk, kind, STAGING_COUNT + 1 + number, number, at)

    _write(of_cluster(), made)
    _write_counts(made)
    filled.seconds = time.monotonic() - began
    began = time.monotonic()
    _with_indexes(statements)
    filled.index_seconds = time.monotonic() - began
    return filled


def _kinds(cluster: Cluster, now: datetime) -> tuple[list[Kind], Kind, Kind]:
    """Returns the failures of which the biggest is the first, that of the old incident, and the one that few have."""
    choice = random.Random(3)
    names = [f"{choice.choice(WORDS)}-{choice.choice(WORDS)}-{number}" for number in range(GROUP_COUNT)]
    topics = [f"{choice.choice(WORDS)}-events-{number}" for number in range(TOPIC_COUNT)]
    old = (OLD_GROUP, "imports", "batch", "com.shop.LedgerClosedException", "closed")
    lost = (names[3], LOST_TOPIC, "tag1", CLASSES[1], TEXTS[1])
    big = (BIG_GROUP, "orders", "paid", CLASSES[0], TEXTS[0])
    others = [
        (
            names[number % GROUP_COUNT],
            topics[(number * 7) % TOPIC_COUNT],
            f"tag{choice.randrange(TAG_COUNT)}",
            choice.choice(CLASSES),
            choice.choice(TEXTS),
        )
        for number in range(GROUP_COUNT * 10)
    ]
    made = _make_kinds(cluster, [old, lost, big, *others], now)
    DeadLetterQueue.objects.bulk_create(
        DeadLetterQueue(
            cluster=cluster, topic_name=f"%DLQ%{one}", broker_name="broker-a", queue_id=0, next_offset=9, end_offset=9
        )
        for one in [*names, BIG_GROUP, OLD_GROUP]
    )
    return made[2:], replace(made[0], incident="ledger-2019"), made[1]


def _make_kinds(cluster: Cluster, wanted: Sequence[tuple[str, str, str, str, str]], now: datetime) -> list[Kind]:
    failures = Failure.objects.bulk_create(
        (
            Failure(
                cluster=cluster,
                group_name=group,
                identity=uuid4().hex,
                origin_topic=topic,
                tag=tag,
                attempt_count=ATTEMPTS,
                failure_class=error,
                failure_text=text,
                shape="{customer: object, items: array, note: string}",
                first_dead_at=now,
                last_dead_at=now - timedelta(days=DAYS),
            )
            for group, topic, tag, error, text in wanted
        ),
        batch_size=500,
    )
    return [kind_of(failure) for failure in failures]


def _write(rows: Iterable[Row], made: Counter[tuple[int, int]]) -> None:
    for_database = _copy if connection.vendor == "postgresql" else _insert
    remaining = iter(rows)
    while chunk := list(islice(remaining, CHUNK)):
        for_database(chunk)
        made.update((one.dead[2], int(one.dead[7].timestamp()) // 3600) for one in chunk)


def _tables() -> tuple[tuple[str, tuple[str, ...]], ...]:
    return (
        (DeadLetter._meta.db_table, DEAD_COLUMNS),
        (KeptMessage._meta.db_table, ("dead_letter_id", "properties", "body")),
        (SearchText._meta.db_table, ("dead_letter_id", "words", "body")),
    )


def _values(chunk: Sequence[Row]) -> tuple[Iterator[tuple[Any, ...]], ...]:
    return (
        (one.dead for one in chunk),
        ((one.dead[0], one.properties, one.body) for one in chunk),
        ((one.dead[0], one.words, one.text) for one in chunk),
    )


def _insert(chunk: Sequence[Row]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        for (table, columns), values in zip(_tables(), _values(chunk), strict=True):
            marks = ", ".join(["?"] * len(columns))
            shown = [tuple(_for_sqlite(value) for value in row) for row in values]
            connection.connection.executemany(
                f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})",  # noqa: S608 - names of ours
                shown,
            )
        cursor.execute("COMMIT")


def _for_sqlite(value: Any) -> Any:
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ") if isinstance(value, datetime) else value


def _copy(chunk: Sequence[Row]) -> None:
    with connection.cursor() as cursor:
        # Foreign keys hold by the making.
        cursor.execute("SET session_replication_role = replica")
        for (table, columns), values in zip(_tables(), _values(chunk), strict=True):
            with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
                for row in values:
                    copy.write_row(row)
        cursor.execute("SET session_replication_role = DEFAULT")


def _write_counts(made: Counter[tuple[int, int]]) -> None:
    of_failure: dict[int, list[tuple[int, int]]] = {}
    for (failure_id, hour), count in made.items():
        of_failure.setdefault(failure_id, []).append((hour, count))
    write(
        Failure,
        (
            Change(
                failure_id,
                {
                    "dead_count": sum(count for _, count in hours),
                    "first_dead_at": datetime.fromtimestamp(min(hours)[0] * 3600, UTC),
                    "last_dead_at": datetime.fromtimestamp(max(hours)[0] * 3600, UTC),
                },
            )
            for failure_id, hours in of_failure.items()
        ),
    )
    kept_from = max(hour for _, hour in made) - 30 * 24
    FailureHour.objects.bulk_create(
        (
            FailureHour(failure_id=failure_id, hour=datetime.fromtimestamp(hour * 3600, UTC), dead_count=count)
            for (failure_id, hour), count in made.items()
            if hour >= kept_from
        ),
        batch_size=5_000,
    )


# Of all but constraints: name and statement.
_INDEXES = {
    "postgresql": "SELECT indexname, indexdef FROM pg_indexes WHERE tablename IN ({marks}) "
    "AND indexname NOT IN (SELECT conname FROM pg_constraint)",
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN ({marks})",
}


def _without_indexes() -> list[str]:
    """Drops the indexes that are not a constraint's; returns the statements that make them again."""
    tables = [table for table, _ in _tables()]
    marks = ", ".join(["%s"] * len(tables))
    with connection.cursor() as cursor:
        cursor.execute(_INDEXES[connection.vendor].format(marks=marks), tables)
        indexes = cursor.fetchall()
        for name, _ in indexes:
            cursor.execute(f'DROP INDEX "{name}"')
        if connection.vendor == "sqlite":
            for kind, names in (("TRIGGER", search_index.SQLITE_TRIGGERS), ("TABLE", search_index.SQLITE_TABLES)):
                for name in names:
                    cursor.execute(f"DROP {kind} {name}")
    # The search's own are made by its `install`.
    return [statement for name, statement in indexes if "search" not in name]


def _with_indexes(statements: Sequence[str]) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET maintenance_work_mem = '1GB'")
            for table in (DeadLetter, Failure, FailureHour, DeadLetterQueue):
                name = table._meta.db_table
                cursor.execute(f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), (SELECT max(id) FROM {name}))")  # noqa: S608
        for statement in statements:
            cursor.execute(statement)
    search_index.install(connection)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")
