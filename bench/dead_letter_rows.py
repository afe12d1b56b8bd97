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

import json
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

from mqadmin.clusters.bulk import Change, write
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters import search_index
from mqadmin.deadletters.models import DeadLetter, DeadLetterQueue, Failure, FailureHour, KeptMessage, SearchText
from mqadmin.deadletters.search_texts import searched_body, words_text

GROUP_COUNT = 200
TOPIC_COUNT = 60
TAG_COUNT = 20
MEMBER_COUNT = 500
CUSTOMER_COUNT = 100_000
STAGING_COUNT = 2_000
DAYS = 80
BIG_GROUP, OLD_GROUP, RARE_TAG, LOST_TOPIC = "orders-settlement", "legacy-import", "rare-tag", "lost-topic"
RARE_EVERY = 50_000
ARCHIVED_EVERY = 50
ATTEMPTS, LISTENER = 16, "shop.listeners.on_event"
CHUNK = 20_000
_CLASSES = (
    "com.shop.payment.PaymentTimeoutException",
    "java.net.SocketTimeoutException",
    "org.springframework.dao.DuplicateKeyException",
    "com.shop.stock.OutOfStockException",
    "builtins.KeyError",
    "builtins.ValueError",
    "django.db.utils.OperationalError",
    "requests.exceptions.ReadTimeout",
    "json.decoder.JSONDecodeError",
    "",
)
_TEXTS = (
    "no answer from payment-gateway after 30 s",
    "Duplicate entry for key uk_order_id",
    "missing field customer.address",
    "connection refused by ledger-db",
    "Expecting value: line 1 column 1 (char 0)",
)
_WORDS = (
    "invoice",
    "address",
    "delivery",
    "express",
    "parcel",
    "weekend",
    "gift",
    "red",
    "blue",
    "small",
    "large",
    "cotton",
    "leather",
    "kettle",
    "lamp",
    "window",
    "garden",
    "return",
    "exchange",
    "voucher",
    "partner",
    "branch",
    "north",
    "south",
    "station",
    "pickup",
    "locker",
    "signed",
    "fragile",
    "insured",
    "customs",
    "declared",
)
_CITIES = ("Hangzhou", "Berlin", "São Paulo", "Nairobi", "Osaka", "Toronto", "上海", "Kraków")


@dataclass(frozen=True, slots=True)
class Kind:
    """What dead letters of one failure have in common; `words` and `marks` stand behind those of the row."""

    failure_id: int
    group: str
    topic: str
    tag: str
    failure_class: str
    failure_text: str
    words: str
    marks: str
    incident: str = ""


@dataclass(slots=True)
class Filled:
    """What was made, for searches that find something."""

    cluster: Cluster
    staging: Cluster
    count: int
    seconds: float = 0.0
    index_seconds: float = 0.0
    groups: list[str] = field(default_factory=list)


def order_key(number: int) -> str:
    """Returns the key that one dead letter has alone."""
    return f"order-{number:09d}"


def message_id(number: int) -> str:
    """Returns the id that one dead letter has alone."""
    return f"7F0000010B2C18B4AAC2{number:012X}"


def fill(cluster: Cluster, staging: Cluster, count: int, now: datetime) -> Filled:
    """Makes `count` dead letters of `cluster`, and those of `staging`."""
    choice = random.Random(7)
    filled = Filled(cluster, staging, count)
    began = time.monotonic()
    kinds, old, lost = _kinds(cluster, now)
    filled.groups = sorted({kind.group for kind in kinds})
    (elsewhere,) = _make_kinds(staging, [(BIG_GROUP, "orders", "paid", _CLASSES[0], _TEXTS[0])], now)
    # Few failures have most; the first, of the big group, has a ninth of what the others have together.
    others = [1 / (10 + place) for place in range(1, len(kinds))]
    weights = list(accumulate([sum(others) / 9, *others]))
    statements = _without_indexes()
    spread_s = DAYS * 86_400
    # One after the other, as the index numbers them; cluster by cluster.
    first_at = now - timedelta(days=DAYS)
    made: Counter[tuple[int, int]] = Counter()
    rows: Iterator[_Row] = (
        _row(choice, staging, elsewhere, number, number, first_at) for number in range(1, STAGING_COUNT + 1)
    )
    _write(rows, made)
    picked = choice.choices

    def of_cluster() -> Iterator[_Row]:
        for number in range(count):
            at = first_at + timedelta(seconds=spread_s * number / count)
            if number < count // 4 and choice.random() < 0.4:
                kind = old
            elif number % (count // 50 or 1) == 3:
                kind = lost
            else:
                (kind,) = picked(kinds, cum_weights=weights)
            yield _row(choice, cluster, kind, STAGING_COUNT + 1 + number, number, at)

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
    names = [f"{choice.choice(_WORDS)}-{choice.choice(_WORDS)}-{number}" for number in range(GROUP_COUNT)]
    topics = [f"{choice.choice(_WORDS)}-events-{number}" for number in range(TOPIC_COUNT)]
    old = (OLD_GROUP, "imports", "batch", "com.shop.LedgerClosedException", "closed")
    lost = (names[3], LOST_TOPIC, "tag1", _CLASSES[1], _TEXTS[1])
    big = (BIG_GROUP, "orders", "paid", _CLASSES[0], _TEXTS[0])
    others = [
        (
            names[number % GROUP_COUNT],
            topics[(number * 7) % TOPIC_COUNT],
            f"tag{choice.randrange(TAG_COUNT)}",
            choice.choice(_CLASSES),
            choice.choice(_TEXTS),
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
    return [_kind(failure) for failure in failures]


def _kind(failure: Failure) -> Kind:
    common = DeadLetter(
        failure=failure,
        group_name=failure.group_name,
        origin_topic=failure.origin_topic,
        tag=failure.tag,
        failure_class=failure.failure_class,
        failure_text=failure.failure_text,
        failed_listener=LISTENER,
    )
    return Kind(
        failure_id=failure.pk,
        group=failure.group_name,
        topic=failure.origin_topic,
        tag=failure.tag,
        failure_class=failure.failure_class,
        failure_text=failure.failure_text,
        words=words_text(common),
        marks=searched_body(common, b"x")[1:],
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """One dead letter, as its three tables have it."""

    dead: tuple[Any, ...]
    properties: str
    body: bytes | None
    words: str
    text: str


_DEAD_COLUMNS = (
    "id",
    "cluster_id",
    "failure_id",
    "group_name",
    "broker_name",
    "queue_id",
    "queue_offset",
    "dead_at",
    "message_id",
    "offset_message_id",
    "origin_topic",
    "tag",
    "keys",
    "born_at",
    "born_host",
    "attempt_count",
    "failure_class",
    "failure_text",
    "failed_member",
    "failed_listener",
    "body_bytes",
    "archived_at",
)


def _row(choice: random.Random, cluster: Cluster, kind: Kind, pk: int, number: int, at: datetime) -> _Row:
    is_rare = number % RARE_EVERY == 7
    tag = RARE_TAG if is_rare else kind.tag
    customer, draw = choice.randrange(CUSTOMER_COUNT), choice.random()
    member = f"10.2.{customer % 5}.{customer % 100}@{1000 + customer % MEMBER_COUNT}"
    host = f"10.1.{customer % 4}.{customer % 250}:41234"
    unique, stored, key = message_id(number), f"0A000001000078BC{number * 2000:016X}", order_key(number)
    whole_host, whole_member = host.replace(".", "").replace(":", ""), member.replace(".", "").replace("@", "")
    words = (
        f" {unique.lower()} {stored.lower()} order{number:09d} customer{customer:06d} {whole_host} {whole_host[:-5]} "
        f"{whole_member} order {number:09d} customer {customer:06d}{' raretag rare' if is_rare else ''}{kind.words}"
    )
    body = _body(choice, kind, number, customer, draw, is_rare=is_rare)
    properties = json.dumps(
        {
            "UNIQ_KEY": unique,
            "KEYS": f"{key} customer-{customer:06d}",
            "TAGS": tag,
            "RETRY_TOPIC": kind.topic,
            "__FAILURE_CLASS": kind.failure_class,
            "__FAILURE_TEXT": kind.failure_text,
            "__FAILURE_MEMBER": member,
            "__FAILURE_LISTENER": LISTENER,
        }
    )
    dead = (
        pk,
        cluster.pk,
        kind.failure_id,
        kind.group,
        "broker-a",
        0,
        number,
        at,
        unique,
        stored,
        kind.topic,
        tag,
        f" {key} customer-{customer:06d} ",
        at - timedelta(minutes=280),
        host,
        ATTEMPTS,
        kind.failure_class,
        kind.failure_text,
        member,
        LISTENER,
        len(body),
        at if number % ARCHIVED_EVERY == 11 else None,
    )
    # One of a hundred is no text.
    is_text = draw >= 0.01
    text = f"{body.decode()}{kind.marks}" if is_text else ""
    return _Row(dead, properties, body if is_text else body + b"\xff\xfe", words, text)


def _body(choice: random.Random, kind: Kind, number: int, customer: int, draw: float, *, is_rare: bool) -> bytes:
    words = choice.choices(_WORDS, k=12)
    items = ", ".join(
        f'{{"sku": "sku-{(customer * 31 + each * 977) % 20_000:05d}", "qty": {each + 1}, "price": {19 + each * 7}.90}}'
        for each in range(1 + customer % 3)
    )
    return (
        f'{{"order": "{order_key(number)}", "customer": {{"id": "customer-{customer:06d}", '
        f'"city": "{_CITIES[customer % 8]}", "vip": {"true" if draw > 0.95 else "false"}}}, '
        f'"currency": "{"EUR" if customer % 2 else "USD"}", "items": [{items}], "amount": {int(draw * 90_000)}, '
        f'"channel": "{words[0]}", "trace": "{choice.getrandbits(128):032x}", '
        f'"note": "{" ".join(words)}{" needle in it" if is_rare else ""}", "batch": "{kind.incident or "live"}"}}'
    ).encode()


def _write(rows: Iterable[_Row], made: Counter[tuple[int, int]]) -> None:
    for_database = _copy if connection.vendor == "postgresql" else _insert
    remaining = iter(rows)
    while chunk := list(islice(remaining, CHUNK)):
        for_database(chunk)
        made.update((row.dead[2], int(row.dead[7].timestamp()) // 3600) for row in chunk)


def _tables() -> tuple[tuple[str, tuple[str, ...]], ...]:
    return (
        (DeadLetter._meta.db_table, _DEAD_COLUMNS),
        (KeptMessage._meta.db_table, ("dead_letter_id", "properties", "body")),
        (SearchText._meta.db_table, ("dead_letter_id", "words", "body")),
    )


def _values(chunk: Sequence[_Row]) -> tuple[Iterator[tuple[Any, ...]], ...]:
    return (
        (row.dead for row in chunk),
        ((row.dead[0], row.properties, row.body) for row in chunk),
        ((row.dead[0], row.words, row.text) for row in chunk),
    )


def _insert(chunk: Sequence[_Row]) -> None:
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


def _copy(chunk: Sequence[_Row]) -> None:
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
