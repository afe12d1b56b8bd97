"""What a cycle of lag costs as the product runs it: 100 to 50,000 groups of 8 queues, on SQLite and PostgreSQL.

Measured in each: the cycle of an idle cluster; the worst one, in which every queue of every group moved: all groups are
judged (sums, rates, verdicts, histories, and who hears of them), then sampled into the hot window, then a window that
is full is thinned; what a day of that takes on the disk; and the list of groups meanwhile, asked again and again by
another process. "CPU s" is processor time of the cycle's own thread, PostgreSQL's not included. What brokers are asked
for, and the rows of offsets, are those of following (`bench cycles`).

A cycle is due every 30 s. It ends with 1 where one of up to 10,000 groups takes more than half of that, on either
database. `BENCH_SIZES=100,10000` measures these sizes alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqadmin.clusters.models import Cluster

SIZES = (100, 1_000, 10_000, 50_000)
# Up to so many groups are held to the headroom.
BAR_GROUPS = 10_000
CYCLE_S = 30
QUEUE_COUNT = 8
GROUPS_PER_TOPIC = 10
# The worst cycle is taken so often.
ROUNDS = 3
HEADROOM = 2
# The exit code of the process that measures a size.
BROKEN = 3
PAGE = "/clusters/local/groups/?sort=-lag"


def main() -> None:
    if sys.argv[1:2] == ["measure"]:
        _measure(int(sys.argv[2]))
        return
    if sys.argv[1:] == ["ask"]:
        _ask_until_told()
        return
    from tests.support.postgres import PostgresServer  # not for the process that measures
    from tests.support.redis_server import RedisServer  # not for the process that measures

    sizes = tuple(int(text) for text in os.environ.get("BENCH_SIZES", "").split(",") if text) or SIZES
    head = ("groups", "idle s", "judge s", "sample s", "CPU s", "rows/s", "thin s", "B/row", "GB/day", "page p95 ms")
    print("".join(f"{word:>13}" for word in (*head, "quiet", "headroom")), flush=True)
    broken = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, RedisServer(Path(folder)) as redis:
        for size in sizes:
            if _measure_beside(size, Path(folder) / f"sqlite-{size}", redis.url):
                broken.append(f"SQLite, {size:,} groups")
        with PostgresServer() as postgres:
            print("PostgreSQL", flush=True)
            for size in sizes:
                if _measure_beside(size, Path(folder) / f"postgres-{size}", redis.url, DATABASE_URL=postgres.url):
                    broken.append(f"PostgreSQL, {size:,} groups")
    for what in broken:
        print(f"BROKEN: {what}: a cycle takes more than {CYCLE_S / HEADROOM:.0f} s")
    if broken:
        sys.exit(1)


def is_broken(group_count: int, cycle_s: float) -> bool:
    """Tells whether a cycle of so many groups leaves less than the headroom."""
    return group_count <= BAR_GROUPS and HEADROOM * cycle_s > CYCLE_S


def _measure_beside(size: int, data: Path, redis_url: str, **environment: str) -> bool:
    """Measures in a process of its own: a process has one set of settings. Returns whether the bar is broken."""
    settings = {"MQADMIN_DATA": str(data), "REDIS_URL": redis_url, "DJANGO_SETTINGS_MODULE": "mqadmin.settings"}
    command = [sys.executable, "-m", "bench.sampling", "measure", str(size)]
    measured = subprocess.run(command, env={**os.environ, **settings, **environment})
    if measured.returncode not in (0, BROKEN):
        measured.check_returncode()
    return measured.returncode == BROKEN


def _measure(size: int) -> None:
    """Imports Django only here: its imports need the settings, and those the environment that `main` made."""
    import django  # after `main`, see above

    django.setup()
    from django.contrib.auth import get_user_model  # after setup
    from django.core.management import call_command  # after setup
    from django.utils import timezone  # after setup

    from bench.followed import make_followed  # after setup
    from mqadmin.clusters.models import Cluster  # after setup
    from mqadmin.lag import retention  # after setup
    from mqadmin.lag.models import GroupSample, SamplingState  # after setup

    call_command("migrate", verbosity=0)
    Cluster.objects.all().delete()
    get_user_model().objects.get_or_create(username="ann", is_superuser=True, is_staff=True)
    now = timezone.now().replace(minute=1, second=0, microsecond=0)
    topic_count = max(1, size // GROUPS_PER_TOPIC)
    make_followed(topic_count=topic_count, group_count=size, read_topics=topic_count, queue_count=QUEUE_COUNT, now=now)
    cluster = Cluster.objects.get(name="local")
    _judge(cluster, now)
    _cycle(cluster, now)
    idle_s = _cycle(cluster, now + timedelta(seconds=CYCLE_S))
    quiet_ms = _page_ms(3.0)
    sizes_before = _bytes()
    judged, taken, cpu = [], [], []
    pages = _Pages()
    with pages:
        for number in range(2, 2 + ROUNDS):
            _move_all()
            at, begun_s = now + timedelta(seconds=CYCLE_S * number), time.thread_time()
            judged.append(_judge(cluster, at))
            taken.append(_cycle(cluster, at))
            cpu.append(time.thread_time() - begun_s)
    rows = size * ROUNDS
    assert GroupSample.objects.count() == rows + size, "every group moved in every cycle"
    per_row = (_bytes() - sizes_before) / rows
    SamplingState.objects.update(thinned_until_s=0)
    began_s = time.perf_counter()
    removed = retention.step(cluster, now + timedelta(seconds=retention.RAW_FOR_S + 300))
    thin_s = (time.perf_counter() - began_s) / max(1, removed) * size * 1.5
    worst_s = max(map(sum, zip(judged, taken, strict=True))) + thin_s
    # Kept of each group in the window of two days.
    kept = retention.RAW_FOR_S // CYCLE_S + (retention.KEPT_FOR_S - retention.RAW_FOR_S) // 60
    per_day = per_row * size * 86_400 / CYCLE_S
    print(
        f"{size:>13,}{idle_s:>13.2f}{max(judged):>13.2f}{max(taken):>13.2f}{max(cpu):>13.2f}"
        f"{size / max(taken):>13,.0f}{thin_s:>13.2f}{per_row:>13.0f}"
        f"{per_day / 1e9:>13.2f}{pages.p95_ms:>13.0f}{quiet_ms:>13.0f}{CYCLE_S / worst_s:>12.1f}x"
        f"   ({per_row * size * kept / 1e9:.2f} GB kept)",
        flush=True,
    )
    sys.exit(BROKEN if is_broken(size, worst_s) else 0)


def _judge(cluster: Cluster, now: datetime) -> float:
    """Has all groups measured and judged, as after an observation of which every queue moved; returns the seconds."""
    from django.db import transaction  # after setup

    from mqadmin.clusters.bulk import chunks  # after setup
    from mqadmin.observing.signals import GroupsCommitted, groups_committed, publish  # after setup

    group_ids = list(cluster.groups.values_list("pk", flat=True))
    began_s = time.perf_counter()
    for batch in chunks(group_ids):
        with transaction.atomic():
            publish(groups_committed, GroupsCommitted(cluster=cluster, at=now, is_watched=True, group_ids=batch))
    return time.perf_counter() - began_s


def _cycle(cluster: Cluster, now: datetime) -> float:
    from mqadmin.clusters.models import Cluster  # after setup
    from mqadmin.lag import sampling  # after setup

    Cluster.objects.update(last_synced_at=now)
    read = Cluster.objects.with_freshness().get(name="local")
    began_s = time.perf_counter()
    assert sampling.sample_cluster(read, now) is not None, f"{cluster} was not due"
    return time.perf_counter() - began_s


def _move_all() -> None:
    from django.db.models import F  # after setup

    from mqadmin.clusters.models import QueueOffset, TopicQueue  # after setup

    TopicQueue.objects.update(max_offset=F("max_offset") + 17)
    QueueOffset.objects.update(committed_offset=F("committed_offset") + 16)


def _bytes() -> int:
    from django.conf import settings  # after setup
    from django.db import connection  # after setup

    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_total_relation_size('mq_lag_groupsample')")
            return int(cursor.fetchone()[0])
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return Path(settings.DATABASES["default"]["NAME"]).stat().st_size


class _Pages:
    """Asks for the page again and again, as long as the block runs, in a process of its own as web processes are."""

    def __init__(self) -> None:
        self.p95_ms = 0.0
        command = [sys.executable, "-m", "bench.sampling", "ask"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def __exit__(self, *_: object) -> None:
        said, _error = self._process.communicate()
        self.p95_ms = float(said)


def _ask_until_told() -> None:
    """Says so once it asks, and the 95th percentile when its standard input is closed."""
    import django  # after `main`, see above

    django.setup()
    ask, taken, ended = _asking(), [], threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    print("asking", flush=True)
    while not ended.is_set():
        taken.append(ask())
    print(_p95(taken), flush=True)


def _page_ms(seconds: float) -> float:
    ask, taken, until_s = _asking(), [], time.perf_counter() + seconds
    while time.perf_counter() < until_s or len(taken) < 10:
        taken.append(ask())
    return _p95(taken)


def _asking() -> Callable[[], float]:
    from django.contrib.auth import get_user_model  # after setup
    from django.test import Client  # after setup

    page = Client(SERVER_NAME="127.0.0.1")
    page.force_login(get_user_model().objects.get(username="ann"))

    def ask() -> float:
        began_s = time.perf_counter()
        assert page.get(PAGE).status_code == 200
        return 1000 * (time.perf_counter() - began_s)

    ask()
    return ask


def _p95(taken: list[float]) -> float:
    ascending = sorted(taken)
    return ascending[min(len(ascending) - 1, len(ascending) * 95 // 100)] if ascending else 0.0


if __name__ == "__main__":
    main()
