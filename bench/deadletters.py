"""The dead letters at size: how many a second are indexed, and how long pages, REST and searches take.

Entries are made in bulk (`dead_letter_rows.py`). Each page and its twin of REST is asked of the whole application,
ROUNDS times; then what works on very many: counting and freezing a selection (of a tenth of all, one group's), a pass
of the retention. How many a second are indexed is measured with INDEXED (50,000) that are pulled from our broker.

    python -m bench deadletters                        a million on SQLite; with BENCH_FULL=1 ten on PostgreSQL, too
    python -m bench deadletters 200000                 so many on SQLite
    python -m bench deadletters postgres 10000000      so many on PostgreSQL; what is frozen is a million
    python -m bench deadletters freeze 1000000         freezing so many of one group, and nothing else; on SQLite
    python -m bench deadletters freeze postgres 1000000
    python -m bench.deadletters ask                    asks again of what MQADMIN_DATA and DATABASE_URL have

Bars: a page and its twin take at most FIELDS_BAR_MS by fields and BODY_BAR_MS by body text (p95 of ROUNDS requests); it
ends with OVER where one is over. What works on many has none.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from mqadmin.clusters.models import Cluster

SQLITE_COUNT, POSTGRES_COUNT = 1_000_000, 10_000_000
INDEXED = int(os.environ.get("INDEXED", "50000"))
# What a process is started for that measures.
STEPS = ("all", "make", "ask", "work", "one-group", "index")
# The code that it ends with where something was over its bar.
OVER = 3
# The slowest twentieth of so many is two.
ROUNDS = int(os.environ.get("ROUNDS", "20"))
FIELDS_BAR_MS = 200
BODY_BAR_MS = 1000
DAYS_OF_SEARCH = ("since", "until", "born_since", "born_until")
PAGES, REST = "/clusters/prod", "/api/v1/clusters/prod"


def main() -> None:
    words = sys.argv[1:]
    if words and words[0] in STEPS:
        _in_process(words[0], int(words[1]) if len(words) > 1 else 0)
        return
    unknown = [word for word in words if word not in ("freeze", "postgres") and not word.isdigit()]
    if unknown:
        sys.exit(f"neither a number nor freeze or postgres: {' '.join(unknown)}")
    step = "one-group" if "freeze" in words else "all"
    size = next((int(word) for word in words if word.isdigit()), 0)
    if step == "all":
        print(f"bars: p95 of a page and of its twin {FIELDS_BAR_MS} ms by fields, {BODY_BAR_MS} ms by body", flush=True)
    is_over = False
    if "postgres" not in words:
        is_over = _beside("SQLite", step, size or SQLITE_COUNT)
    if "postgres" in words or (not words and os.environ.get("BENCH_FULL")):
        from tests.support.postgres import PostgresServer  # not for the process that measures

        with PostgresServer() as server:
            is_over |= _beside("PostgreSQL", step, size or POSTGRES_COUNT, DATABASE_URL=server.url)
    if is_over:
        sys.exit(OVER)


def _beside(database: str, step: str, count: int, **environment: str) -> bool:
    """Measures in a process of its own: a process has one set of settings. Returns whether one was over its bar."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        print(f"{database}, {count:,} dead letters", flush=True)
        settings = {"MQADMIN_DATA": folder, "DJANGO_SETTINGS_MODULE": "mqadmin.settings", **environment}
        ended = subprocess.run(
            [sys.executable, "-m", "bench.deadletters", step, str(count)], env={**os.environ, **settings}, check=False
        )
        if ended.returncode not in (0, OVER):
            raise RuntimeError(f"the process that measures ended with {ended.returncode}")
        return ended.returncode == OVER


def _in_process(what: str, count: int) -> None:
    import django  # needs the settings

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")
    django.setup()
    from django.core.management import call_command  # needs the settings

    over = 0
    if what in ("all", "make", "one-group"):
        call_command("migrate", verbosity=0)
        _make(count, is_one_group=what == "one-group")
    if what in ("all", "ask"):
        over = _ask()
    if what in ("all", "work"):
        _work()
    if what == "one-group":
        _freeze_all()
    if what in ("all", "index"):
        _index()
    if over:
        sys.exit(OVER)


def _make(count: int, *, is_one_group: bool = False) -> None:
    from django.utils import timezone  # needs the settings

    from bench.dead_letter_rows import fill  # needs the settings
    from tests.support.console_rows import make_broker, make_cluster, make_group  # needs the settings

    now = timezone.now()
    cluster, staging = make_cluster("prod", now=now), make_cluster("staging", now=now)
    make_broker(cluster, now=now)
    filled = fill(cluster, staging, count, now, is_one_group=is_one_group)
    for name in filled.groups:
        make_group(cluster, name, now=now)
    print(f"  made in {filled.seconds:,.0f} s, their indexes in {filled.index_seconds:,.0f} s", flush=True)


# asking


@dataclass(frozen=True, slots=True)
class Search:
    """One row of the table: a page, its twin, and the bar of both."""

    name: str
    page: str = ""
    rest: str = ""
    bar_ms: int = FIELDS_BAR_MS


def _ask() -> int:
    """Returns how many were over their bars."""
    from django.contrib.auth import get_user_model  # needs the settings
    from django.test import Client  # needs the settings
    from django.utils import timezone  # needs the settings

    from mqadmin.api import throttles  # needs the settings
    from mqadmin.tokens.models import ApiToken, digest_of, new_secret  # needs the settings

    throttles.READS_PER_MIN = 10**9
    ann, _ = get_user_model().objects.get_or_create(username="ann", is_superuser=True, is_staff=True)
    secret = new_secret()
    ApiToken.objects.update_or_create(
        person=ann,
        name="all",
        defaults={
            "digest": digest_of(secret),
            "role": "admin",
            "expires_at": timezone.now() + timedelta(days=1),
        },
    )
    page = Client(SERVER_NAME="127.0.0.1")
    page.force_login(ann)
    rest = Client(SERVER_NAME="127.0.0.1", headers={"Authorization": f"Bearer {secret}"})
    print(f"  {'':<40}{'page p50':>9}{'p95':>7}{'REST p50':>10}{'p95':>7} ms", flush=True)
    over = 0
    for search in _searches():
        shown = _times_ms(page, search.page)
        told = _times_ms(rest, search.rest)
        is_over = max(shown[1], told[1]) > search.bar_ms
        over += is_over
        figures = "".join(f"{one:>8.0f}" if one else f"{'–':>8}" for one in (*shown, *told))
        print(f"  {search.name:<40}{figures}{'  OVER' if is_over else ''}", flush=True)
    print(f"  over the bars of {FIELDS_BAR_MS} and, by body, {BODY_BAR_MS} ms: {over}", flush=True)
    return over


def _times_ms(client: Any, path: str) -> tuple[float, float]:
    """Returns the median and the 95th percentile of ROUNDS requests, after one that is not counted."""
    if not path:
        return 0.0, 0.0
    choice, taken = random.Random(7), []
    for number in range(ROUNDS + 1):
        # Another dead letter each time, so that none is asked for twice.
        asked = path.replace("NUMBER", f"{choice.randrange(_newest()):09d}")
        began = time.perf_counter()
        answer = client.get(asked)
        if answer.status_code != 200:
            raise RuntimeError(f"{asked}: {answer.status_code}")
        if number:
            taken.append((time.perf_counter() - began) * 1000)
    taken.sort()
    return taken[len(taken) // 2], taken[min(len(taken) - 1, len(taken) * 95 // 100)]


def _newest() -> int:
    from mqadmin.deadletters.models import DeadLetter  # needs the settings

    return DeadLetter.objects.order_by("-pk").values_list("pk", flat=True)[0] - 2000


def _searches() -> list[Search]:
    from bench.dead_letter_values import BIG_GROUP, LOST_TOPIC, OLD_GROUP, RARE_TAG  # needs the settings
    from mqadmin.deadletters.models import DeadLetter, Failure  # needs the settings

    latest = DeadLetter.objects.order_by("-dead_at").values_list("dead_at", flat=True)[0]
    day, last_day = (latest - timedelta(days=30)).date(), latest.date()
    big = Failure.objects.filter(cluster__name="prod", group_name=BIG_GROUP).values_list("pk", flat=True)[0]
    of_big = f"{PAGES}/deadletters/failures/{big}/"
    of_cluster = Failure.objects.filter(cluster__name="prod", dead_count__gt=100)
    some = of_cluster.order_by("dead_count").values_list("pk", flat=True)[0]
    middle = DeadLetter.objects.filter(cluster__name="prod", archived_at=None, dead_at__lt=latest - timedelta(days=40))
    row = middle.order_by("-dead_at", "-pk").only("dead_at")[0]
    behind = quote(f"{row.dead_at.isoformat()}_{row.pk}")

    def by(name: str, bar_ms: int = FIELDS_BAR_MS, **words: str) -> Search:
        # The page has no filter of its own for them, and lists failures where nothing is looked for.
        has_page = bool(words) and not {"group", "failure"} & set(words)
        told = {what: "true" if what == "archived" else value for what, value in words.items()}
        told |= {what: f"{told[what]}T00:00:00Z" for what in DAYS_OF_SEARCH if what in told}
        page = f"{PAGES}/deadletters/?{urlencode(words)}" if has_page else ""
        return Search(name, page, f"{REST}/dead-letters?{urlencode({'limit': 50, **told})}", bar_ms)

    return [
        Search("overview", "/", "/api/v1/clusters"),
        Search("the cluster", f"{PAGES}/", REST),
        Search("failures", f"{PAGES}/deadletters/", f"{REST}/failures?limit=50"),
        *(
            Search(
                f"failures by {what}", f"{PAGES}/deadletters/?by={what}", f"{REST}/failures/grouped?limit=50&by={what}"
            )
            for what in ("group", "topic", "tag", "class")
        ),
        Search("the tab of a group", f"{PAGES}/groups/{BIG_GROUP}/deadletters/", f"{REST}/failures?group={BIG_GROUP}"),
        Search("a failure of a tenth of all", of_big, f"{REST}/dead-letters?failure={big}"),
        Search("its messages of 40 days ago", f"{of_big}?before={behind}"),
        by("all, newest"),
        by("of a group", group=OLD_GROUP),
        by("of a day", since=f"{day}", until=f"{day + timedelta(days=1)}"),
        by("archived", since=f"{day}", archived="1"),
        by("by id", q="7F0000010B2C18B4AAC2000NUMBER"),
        by("by key", q="order-NUMBER"),
        by("by key of 100", q="customer-000777"),
        by("by group of a tenth", q=BIG_GROUP),
        by("by group, old", q=OLD_GROUP),
        by("by group, old, two words", q=f"{OLD_GROUP} batch"),
        by("by topic of few", q=LOST_TOPIC),
        by("by topic of a tenth", q="orders"),
        by("by tag", q="tag7"),
        by("by rare tag", q=RARE_TAG),
        by("by exception", q="KeyError"),
        by("by exception, old", q="LedgerClosedException"),
        by("by member", q="10.2.3.13@1013"),
        by("by host", q="10.1.1.13"),
        by("by two that many have", q="KeyError orders"),
        by("by broker and queue, that all have", q="broker-a queue0"),
        by("by broker, that none has", q="broker-z"),
        by("by nothing that is there", q="absent-NUMBER"),
        by("by property of 400", user_property="tenant=acme-77"),
        by("by attempts, that all have", attempts="16"),
        by("by attempts, that none has", attempts="3"),
        by("by property and attempts, of a group", user_property="tenant=acme-77", attempts="16", group=BIG_GROUP),
        by("first sent on a day", born_since=f"{day}", born_until=f"{day + timedelta(days=1)}"),
        by("first sent on a day, of a group", born_since=f"{day}", born_until=f"{last_day}", group=OLD_GROUP),
        by("first sent on a day, of a failure", born_since=f"{day}", born_until=f"{last_day}", failure=f"{some}"),
        by("old exception, of yesterday", q="LedgerClosed", since=f"{last_day - timedelta(days=1)}"),
        by("old exception, archived", q="LedgerClosed", archived="1"),
        by("exception that others have, archived", q="KeyError", archived="1", until=f"{day}"),
        by("by key, of a failure", q="customer-000777", failure=f"{some}"),
        by("by exception, of a group", q="KeyError", group=BIG_GROUP),
        by("body: one", BODY_BAR_MS, body="order-NUMBER"),
        by("body: few", BODY_BAR_MS, body="needle in it"),
        by("body: a customer's", BODY_BAR_MS, body="customer-000777"),
        by("body: half of all", BODY_BAR_MS, body='"currency": "EUR"'),
        by("body: a word of many", BODY_BAR_MS, body="kettle"),
        by("body: none", BODY_BAR_MS, body="absent-NUMBER"),
        by("body: many, old", BODY_BAR_MS, body="ledger-2019"),
        by("body: many, old, of yesterday", BODY_BAR_MS, body="ledger-2019", since=f"{last_day - timedelta(days=1)}"),
        by("body: half, of a group", BODY_BAR_MS, body='"currency": "EUR"', group=OLD_GROUP),
        by("body: half, archived", BODY_BAR_MS, body='"currency": "EUR"', archived="1"),
        by("body and word", BODY_BAR_MS, body="kettle", q="KeyError"),
        Search("first rows of an export", "", f"{REST}/dead-letters/export?limit=50"),
        Search("first rows, by body", "", f"{REST}/dead-letters/export?limit=50&body=kettle", BODY_BAR_MS),
    ]


# working on many


def _work() -> None:
    from django.utils import timezone  # needs the settings

    from bench.dead_letter_values import BIG_GROUP  # needs the settings
    from mqadmin.clusters.models import Cluster  # needs the settings
    from mqadmin.deadletters import retention  # needs the settings
    from mqadmin.deadletters.models import DeadLetter  # needs the settings
    from mqadmin.replays import choosing  # needs the settings

    cluster = Cluster.objects.get(name="prod")
    newest = DeadLetter.objects.order_by("-pk").values_list("pk", flat=True)[0]
    began = time.monotonic()
    chosen = choosing.chosen_of_index(cluster, BIG_GROUP, {}, until_id=newest)
    print(f"  counting a selection of {chosen.count:,}: {time.monotonic() - began:.1f} s", flush=True)
    _freeze(cluster, BIG_GROUP, newest)
    began = time.monotonic()
    oldest = DeadLetter.objects.order_by("dead_at").values_list("dead_at", flat=True)[0]
    # As if all but the oldest days were new.
    count = retention.remove_old(oldest + timedelta(days=retention.settings.MQADMIN_DEAD_LETTER_DAYS + 2))
    print(f"  one pass of the retention: {count:,} in {time.monotonic() - began:.1f} s", flush=True)
    began = time.monotonic()
    retention.has_old(timezone.now())
    print(f"  one that finds nothing: {retention.remove_old(timezone.now())} in {time.monotonic() - began:.2f} s")


def _freeze_all() -> None:
    from bench.dead_letter_values import BIG_GROUP  # needs the settings
    from mqadmin.clusters.models import Cluster  # needs the settings
    from mqadmin.deadletters.models import DeadLetter  # needs the settings

    newest = DeadLetter.objects.order_by("-pk").values_list("pk", flat=True)[0]
    _freeze(Cluster.objects.get(name="prod"), BIG_GROUP, newest)


def _freeze(cluster: Cluster, group: str, until_id: int) -> None:
    from django.utils import timezone  # needs the settings

    from mqadmin.replays import freezing, ledger  # needs the settings
    from mqadmin.replays.models import ReplayJob  # needs the settings
    from mqadmin.replays.states import Target  # needs the settings

    job = ReplayJob.objects.create(
        cluster=cluster,
        identity=f"bench {time.time()}",
        group_name=group,
        until_id=until_id,
        target=Target.GROUP,
        rate_per_s=1,
        stop_percent=0,
        created_at=timezone.now(),
    )
    token = ledger.take(job.pk, timezone.now(), lease_s=3600)
    assert token is not None
    began, longest_s = time.monotonic(), 0.0
    while job.frozen_at is None:
        chunk_began = time.monotonic()
        freezing.freeze(job, token)
        longest_s = max(longest_s, time.monotonic() - chunk_began)
    took_s = time.monotonic() - began
    job.refresh_from_db()
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"  freezing {job.total_count:,}: {took_s:.0f} s, {job.total_count / took_s:,.0f} a second, "
        f"the longest chunk {longest_s * 1000:.0f} ms, {memory_mb} MB resident at most",
        flush=True,
    )


# indexing


def _index() -> None:
    """Reads INDEXED dead letters of our broker, beside all that are there."""
    from mqadmin.clusters.models import Broker, Cluster  # needs the settings
    from mqadmin.deadletters.indexing import index_step  # needs the settings
    from mqadmin.deadletters.models import DeadLetterQueue  # needs the settings
    from tests.support.our_broker import OurBroker  # needs the settings

    topic = f"%DLQ%indexed-{time.time():.0f}"
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, OurBroker(Path(folder) / "store", "async") as broker:
        asyncio.run(_send(broker.namesrv, topic))
        cluster = Cluster.objects.get(name="prod")
        Cluster.objects.filter(pk=cluster.pk).update(namesrv=broker.namesrv)
        cluster.refresh_from_db()
        Broker.objects.filter(cluster=cluster).update(name="broker-a", address=broker.broker)
        DeadLetterQueue.objects.create(
            cluster=cluster, topic_name=topic, broker_name="broker-a", queue_id=0, end_offset=INDEXED
        )
        began, count = time.monotonic(), 0
        while count < INDEXED and (done := index_step(cluster)):
            count += done
    print(f"  indexed from our broker: {count:,}, {count / (time.monotonic() - began):,.0f} a second", flush=True)


async def _send(namesrv: str, topic: str) -> None:
    """Sends messages to a dead-letter topic, 100 together. Why they failed only brokers may say of them."""
    from remoting.client.outgoing import Message  # needs the settings
    from remoting.client.producer import Producer  # needs the settings

    producer = Producer(namesrv, "bench-dead-letters", timeout_ms=30_000)
    await producer.start()
    note = "kettle lamp window garden return exchange voucher partner branch north south station"
    queue = None
    for first in range(0, INDEXED, 100):
        batch = [
            Message(
                f'{{"order": "order-x{number:09d}", "customer": {{"id": "customer-{number % 999:06d}"}}, "amount": '
                f'{number * 7919 % 90_000}, "currency": "EUR", "note": "{note}", "trace": "{number:032x}"}}'.encode(),
                "paid",
                f"order-x{number:09d}",
            )
            for number in range(first, first + 100)
        ]
        if queue is None:
            await producer.send(topic, batch[0].body)  # it makes the topic
            queue = (await producer.publish_queues(topic))[0]
        await producer.send_batch(topic, batch, queue=queue)
    await producer.close()


if __name__ == "__main__":
    main()
