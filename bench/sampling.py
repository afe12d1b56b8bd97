"""What a cycle of the hot window costs: 100 to 50,000 groups of 8 queues, on SQLite and PostgreSQL.

Measured in each: the cycle of an idle cluster; the worst one, in which every queue of every group moved, with the
retention of a window that is full; what a day of that takes on the disk; and the list of groups meanwhile, asked again
and again by another thread. A cycle is due every 30 s, so half of that is a headroom of two.
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

SIZES = (100, 1_000, 10_000, 50_000)
QUEUE_COUNT = 8
GROUPS_PER_TOPIC = 10
# The worst cycle is taken so often.
ROUNDS = 3
HEADROOM = 2
PAGE = "/clusters/local/groups/?sort=-lag"


def main() -> None:
    if len(sys.argv) > 1 and sys.argv[1] == "measure":
        _measure(int(sys.argv[2]))
        return
    from tests.support.postgres import PostgresServer  # not for the process that measures
    from tests.support.redis_server import RedisServer  # not for the process that measures

    head = ("groups", "idle s", "worst s", "rows/s", "thin s", "B/row", "GB/day", "page p95 ms", "quiet", "headroom")
    print("".join(f"{word:>13}" for word in head))
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, RedisServer(Path(folder)) as redis:
        for size in SIZES:
            _measure_beside(size, Path(folder) / f"sqlite-{size}", redis.url)
        with PostgresServer() as postgres:
            print("PostgreSQL")
            for size in SIZES:
                _measure_beside(size, Path(folder) / f"postgres-{size}", redis.url, DATABASE_URL=postgres.url)


def _measure_beside(size: int, data: Path, redis_url: str, **environment: str) -> None:
    """Measures in a process of its own: a process has one set of settings."""
    settings = {"MQADMIN_DATA": str(data), "REDIS_URL": redis_url, "DJANGO_SETTINGS_MODULE": "mqadmin.settings"}
    command = [sys.executable, "-m", "bench.sampling", "measure", str(size)]
    subprocess.run(command, env={**os.environ, **settings, **environment}, check=True)


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
    _cycle(cluster, now)
    idle_s = _cycle(cluster, now + timedelta(seconds=30))
    quiet_ms = _page_ms(3.0)
    sizes_before = _bytes()
    taken = []
    busy = _Busy()
    with busy:
        for number in range(2, 2 + ROUNDS):
            _move_all()
            taken.append(_cycle(cluster, now + timedelta(seconds=30 * number)))
    rows = size * ROUNDS
    assert GroupSample.objects.count() == rows + size, "every group moved in every cycle"
    per_row = (_bytes() - sizes_before) / rows
    SamplingState.objects.update(thinned_until_s=0)
    began_s = time.perf_counter()
    removed = retention.step(cluster, now + timedelta(seconds=retention.RAW_FOR_S + 300))
    thin_s = (time.perf_counter() - began_s) / max(1, removed) * size * 1.5
    worst_s = max(taken) + thin_s
    # Kept of each group in the window of two days.
    kept = retention.RAW_FOR_S // 30 + (retention.KEPT_FOR_S - retention.RAW_FOR_S) // 60
    per_day = per_row * size * 86_400 / 30
    print(
        f"{size:>13,}{idle_s:>13.2f}{max(taken):>13.2f}{size / max(taken):>13,.0f}{thin_s:>13.2f}{per_row:>13.0f}"
        f"{per_day / 1e9:>13.2f}{busy.p95_ms:>13.0f}{quiet_ms:>13.0f}{30 / worst_s:>12.1f}x"
        f"   ({per_row * size * kept / 1e9:.2f} GB kept)",
        flush=True,
    )


def _cycle(cluster: object, now: datetime) -> float:
    from mqadmin.clusters.models import Cluster  # after setup
    from mqadmin.lag import sampling  # after setup

    Cluster.objects.update(last_synced_at=now)
    read = Cluster.objects.with_freshness().get(name="local")
    began_s = time.perf_counter()
    assert sampling.sample_cluster(read, now) is not None, f"{cluster} was not due"
    return time.perf_counter() - began_s


def _move_all() -> None:
    from django.db.models import F  # after setup

    from mqadmin.clusters.models import Group, QueueOffset, TopicQueue  # after setup

    TopicQueue.objects.update(max_offset=F("max_offset") + 17)
    QueueOffset.objects.update(committed_offset=F("committed_offset") + 16)
    Group.objects.update(revision=F("revision") + 1)


def _bytes() -> int:
    from django.conf import settings  # after setup
    from django.db import connection  # after setup

    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_total_relation_size('mq_lag_groupsample')")
            return int(cursor.fetchone()[0])
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return Path(settings.DATABASES["default"]["NAME"]).stat().st_size


class _Busy:
    """Asks for the page again and again, in a thread of its own, while the block runs."""

    def __init__(self) -> None:
        self._taken: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def p95_ms(self) -> float:
        return _p95(self._taken)

    def _ask(self) -> None:
        ask = _asking()
        while not self._ended.is_set():
            self._taken.append(ask())


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
