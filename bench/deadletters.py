"""The index of dead letters at size: how many a second are indexed, and how long the first page of a search takes.

Messages of 1 KiB of JSON, of 200 groups and some 1,000 failures, are written as the index writes them. Searches are
asked of the selectors, as pages and REST ask them: by indexed fields, and by body text, each with words that one
message has, that few have and that all have, and with filters. LETTERS (1,000,000) on SQLite; with BENCH_FULL=1
10,000,000 on PostgreSQL, too (POSTGRES_LETTERS says another number and implies it).
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

LETTERS = int(os.environ.get("LETTERS", "1000000"))
POSTGRES_LETTERS = int(os.environ.get("POSTGRES_LETTERS", "10000000" if os.environ.get("BENCH_FULL") else "0"))
GROUP_COUNT = 200
BATCH = 1000
BODY_BYTES = 1024
# The slowest twentieth of so many is two.
ROUNDS = 40
FIELDS_BAR_MS = 200
BODY_BAR_MS = 1000


def main() -> None:
    if "MQADMIN_DATA" in os.environ and len(sys.argv) > 2 and sys.argv[1] == "measure":
        _measure(int(sys.argv[2]))
        return
    from tests.support.postgres import PostgresServer  # not for the process that measures

    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        print(f"SQLite, {LETTERS:,} dead letters", flush=True)
        _in_process(Path(folder), LETTERS)
    if POSTGRES_LETTERS:
        with PostgresServer() as server, tempfile.TemporaryDirectory(prefix="bench-") as folder:
            print(f"PostgreSQL, {POSTGRES_LETTERS:,} dead letters", flush=True)
            _in_process(Path(folder), POSTGRES_LETTERS, DATABASE_URL=server.url)


def _in_process(folder: Path, count: int, **environment: str) -> None:
    given = {**os.environ, "MQADMIN_DATA": str(folder), "DJANGO_SETTINGS_MODULE": "mqadmin.settings", **environment}
    subprocess.run([sys.executable, "-m", "bench.deadletters", "measure", str(count)], env=given, check=True)


def _measure(count: int) -> None:
    import django  # needs the settings

    django.setup()
    from django.core.management import call_command  # needs the settings
    from django.db import connection  # needs the settings
    from django.utils import timezone  # needs the settings

    from mqadmin.deadletters.models import DeadLetter, Failure  # needs the settings
    from mqadmin.deadletters.selectors import (  # needs the settings
        DeadLetterFilter,
        FailureFilter,
        dead_letters,
        failures,
    )
    from mqadmin.people.roles import Role  # needs the settings
    from tests.support import console_rows as seed  # needs the settings

    call_command("migrate", verbosity=0)
    now = timezone.now()
    cluster = seed.make_cluster("prod", now=now)
    _fill(cluster, count)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
    choice = random.Random(7)
    failure_ids = list(Failure.objects.values_list("pk", flat=True)[:500])
    latest = DeadLetter.objects.order_by("-dead_at").values_list("dead_at", flat=True)[0]

    def search(**wanted: object) -> None:
        rows = dead_letters(cluster, DeadLetterFilter(role=Role.ADMIN, **wanted))  # type: ignore[arg-type]
        rows.page("")

    def one() -> int:
        return choice.randrange(count)

    fields: dict[str, Callable[[], object]] = {
        "failures": lambda: failures(cluster, FailureFilter()).page(""),
        "all, newest": lambda: search(),
        "of a group": lambda: search(group=f"group-{choice.randrange(GROUP_COUNT)}"),
        "of a failure": lambda: search(failure_id=choice.choice(failure_ids)),
        "of one hour": lambda: search(until=latest - timedelta(hours=choice.randrange(1, 20))),
        "by id": lambda: search(text=f"UNIQ{one():09d}"),
        "by key": lambda: search(text=f"order-{one():09d}"),
        "by key, of another group": lambda: search(text=f"order-{one():09d}", group="group-x"),
        "by error that many have": lambda: search(text="no answer"),
        "by tag of few": lambda: search(text="rare-tag"),
        "by nothing that is there": lambda: search(text=f"absent-{one()}"),
    }
    bodies: dict[str, Callable[[], object]] = {
        "one body": lambda: search(body=f"customer-{one():09d}"),
        "few bodies": lambda: search(body="needle in it"),
        "half of the bodies": lambda: search(body='"currency": "EUR"'),
        "half of them, of a group": lambda: search(body='"currency": "EUR"', group="group-7"),
        "no body": lambda: search(body=f"absent-{one()}"),
    }
    _report("indexed fields", fields, FIELDS_BAR_MS)
    _report("body text", bodies, BODY_BAR_MS)


def _fill(cluster: object, count: int) -> None:
    from django.utils import timezone  # needs the settings

    from mqadmin.deadletters.indexing import write  # needs the settings
    from mqadmin.deadletters.models import DeadLetterQueue  # needs the settings
    from mqadmin.observing.gateway import QueueReading  # needs the settings
    from remoting.wire.properties import Property  # needs the settings
    from tests.support.dead_letter_brokers import dead_message  # needs the settings

    choice = random.Random(7)
    queues = [
        DeadLetterQueue.objects.create(
            cluster=cluster, topic_name=f"%DLQ%group-{number}", broker_name="broker-a", queue_id=0
        )
        for number in range(GROUP_COUNT)
    ]
    filler = "".join(choice.choices("abcdefghijklmnopqrstuvwxyz      ", k=BODY_BYTES * 64))
    began_ms = int((time.time() - 86_400) * 1000)
    spent_s, reported = 0.0, time.monotonic()
    for first in range(0, count, BATCH):
        queue = queues[(first // BATCH) % GROUP_COUNT]
        offset = queue.next_offset
        messages = []
        for number in range(first, min(first + BATCH, count)):
            at = choice.randrange(len(filler) - BODY_BYTES)
            body = (
                f'{{"customer": "customer-{number:09d}", "currency": "{"EUR" if number % 2 else "USD"}", '
                f'"text": "{filler[at : at + BODY_BYTES - 100]}{"needle in it" if number % 50_000 == 7 else ""}"}}'
            )
            messages.append(
                dead_message(
                    offset + number - first,
                    topic=queue.topic_name,
                    commit_log_offset=number * 2000,
                    store_timestamp_ms=began_ms + number * 86_400_000 // count,
                    body=body.encode(),
                    properties={
                        Property.UNIQ_KEY: f"UNIQ{number:09d}",
                        Property.KEYS: f"order-{number:09d}",
                        Property.TAGS: "rare-tag" if number % 50_000 == 7 else f"tag-{number % 5}",
                        Property.FAILURE_CLASS: "PaymentTimeout",
                        Property.FAILURE_TEXT: "no answer after 30 s",
                    },
                )
            )
        end = offset + len(messages)
        began = time.monotonic()
        write(cluster, queue, QueueReading(tuple(messages), end, end), timezone.now())  # type: ignore[arg-type]
        spent_s += time.monotonic() - began
        queue.next_offset = end
        if time.monotonic() - reported > 60:
            reported = time.monotonic()
            print(f"  {first + BATCH:,} indexed, {(first + BATCH) / spent_s:,.0f} a second so far", flush=True)
    print(f"  indexed: {count / spent_s:,.0f} a second", flush=True)


def _report(what: str, searches: dict[str, Callable[[], object]], bar_ms: int) -> None:
    print(f"  first page by {what}, ms (bar of p95: {bar_ms})", flush=True)
    for name, search in searches.items():
        took = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            search()
            took.append((time.perf_counter() - began) * 1000)
        took.sort()
        p95 = took[int(len(took) * 0.95)]
        print(f"    {name:28} p50 {took[len(took) // 2]:8.1f}  p95 {p95:8.1f}{'  OVER' if p95 > bar_ms else ''}")


if __name__ == "__main__":
    main()
