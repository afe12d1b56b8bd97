"""How long list pages and their REST twins take at the server: 10,000 groups of 8 queues, 10,000 topics.

Each is asked ROUNDS times of the whole application (middleware, log-in or token, view, template or JSON), in turn, on
SQLite and on PostgreSQL; nothing that was rendered before is used again. Redis is the one of an install.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

GROUP_COUNT = 10_000
TOPIC_COUNT = 10_000
READ_TOPICS = 1_000
QUEUE_COUNT = 8
ENTRY_COUNT = 100_000
# The slowest twentieth of so many is two.
ROUNDS = 20
BAR_MS = 200
CLUSTER = "clusters/local"

# Page → its twin. REST's limit is the number of rows of a page.
TWINS: tuple[tuple[str, str], ...] = (
    ("/", "clusters"),
    (f"/{CLUSTER}/", CLUSTER),
    (f"/{CLUSTER}/groups/", f"{CLUSTER}/groups?limit=40"),
    (f"/{CLUSTER}/groups/?sort=-lag", f"{CLUSTER}/groups?limit=40&sort=-lag"),
    (f"/{CLUSTER}/groups/?sort=name&page=200", f"{CLUSTER}/groups?limit=40&sort=name"),
    (f"/{CLUSTER}/groups/?q=77", f"{CLUSTER}/groups?limit=40&q=77"),
    (f"/{CLUSTER}/groups/?status=slow", f"{CLUSTER}/groups?limit=40&status=slow"),
    (f"/{CLUSTER}/topics/", f"{CLUSTER}/topics?limit=40"),
    (f"/{CLUSTER}/topics/?sort=-messages", f"{CLUSTER}/topics?limit=40&sort=-messages"),
    (f"/{CLUSTER}/topics/?sort=-groups", f"{CLUSTER}/topics?limit=40&sort=-groups"),
    (f"/{CLUSTER}/topics/?q=77", f"{CLUSTER}/topics?limit=40&q=77"),
    (f"/{CLUSTER}/topics/topic-7/", f"{CLUSTER}/topics/topic-7"),
    (f"/{CLUSTER}/groups/group-7/", f"{CLUSTER}/groups/group-7"),
    (f"/{CLUSTER}/rebalances/", f"{CLUSTER}/rebalances?limit=40"),
    ("/audit/", "audit?limit=50"),
    ("/audit/?person=ann&outcome=failed", "audit?limit=50&person=ann&outcome=failed"),
    ("/audit/?subject=topic-77", "audit?limit=50&subject=topic-77"),
)
# What programs ask for and no page has.
REST_ALONE = (f"{CLUSTER}/groups?limit=500", f"{CLUSTER}/topics?limit=500", f"{CLUSTER}/groups?owner=team-7")


def main() -> None:
    if "MQADMIN_DATA" in os.environ and len(sys.argv) > 1 and sys.argv[1] == "measure":
        _measure()
        return
    from tests.support.postgres import PostgresServer  # not for the process that measures
    from tests.support.redis_server import RedisServer  # not for the process that measures

    with tempfile.TemporaryDirectory(prefix="bench-") as folder, RedisServer(Path(folder)) as redis:
        print("SQLite", flush=True)
        _measure_beside(Path(folder) / "sqlite", redis.url)
        with PostgresServer() as postgres:
            print("\nPostgreSQL", flush=True)
            _measure_beside(Path(folder) / "postgres", redis.url, DATABASE_URL=postgres.url)


def _measure_beside(data: Path, redis_url: str, **environment: str) -> None:
    """Measures in a process of its own: a process has one set of settings."""
    settings = {"MQADMIN_DATA": str(data), "REDIS_URL": redis_url, "DJANGO_SETTINGS_MODULE": "mqadmin.settings"}
    command = [sys.executable, "-m", "bench.lists", "measure"]
    subprocess.run(command, env={**os.environ, **settings, **environment}, check=True)


def _measure() -> None:
    """Imports Django only here: its imports need the settings, and those the environment that `main` made."""
    import django  # after `main`, see above

    django.setup()
    from django.core.management import call_command  # after setup
    from django.test import Client  # after setup

    from mqadmin.api import throttles  # after setup

    call_command("migrate", verbosity=0)
    secret = _make_rows()
    throttles.READS_PER_MIN = 10**9
    page = Client(SERVER_NAME="127.0.0.1")
    rest = Client(SERVER_NAME="127.0.0.1", headers={"Authorization": f"Bearer {secret}"})
    from django.contrib.auth import get_user_model  # after setup

    page.force_login(get_user_model().objects.get(username="ann"))
    print(f"{'page':<44}{'p50':>6}{'p95':>6} ms   {'REST':>6}{'p95':>6} ms   {'REST / page':>11}")
    over = 0
    for path, twin in TWINS:
        shown, told = _times_ms(lambda path=path: _ask(page, path)), _times_ms(lambda twin=twin: _ask_rest(rest, twin))
        over += (shown[1] > BAR_MS) + (told[1] > BAR_MS)
        ratio = told[1] / shown[1]
        print(f"{path:<44}{shown[0]:>6.0f}{shown[1]:>6.0f}      {told[0]:>6.0f}{told[1]:>6.0f}      {ratio:>11.2f}")
    for twin in REST_ALONE:
        told = _times_ms(lambda twin=twin: _ask_rest(rest, twin))
        print(f"/api/v1/{twin:<36}{'':>15}   {told[0]:>6.0f}{told[1]:>6.0f}")
    print(f"pages and twins over the bar of {BAR_MS} ms: {over}")


def _ask(client: object, path: str) -> None:
    answer = client.get(path)  # type: ignore[attr-defined]
    assert answer.status_code == 200, (path, answer.status_code)


def _ask_rest(client: object, path: str) -> None:
    _ask(client, f"/api/v1/{path}")


def _times_ms(ask: Callable[[], None]) -> tuple[float, float]:
    """Returns the median and the 95th percentile of ROUNDS requests, after one that is not counted."""
    ask()
    taken = sorted(_time_ms(ask) for _ in range(ROUNDS))
    return _percentile(taken, 50), _percentile(taken, 95)


def _time_ms(ask: Callable[[], None]) -> float:
    began_s = time.perf_counter()
    ask()
    return 1000 * (time.perf_counter() - began_s)


def _percentile(ascending: Sequence[float], percent: int) -> float:
    return ascending[min(len(ascending) - 1, len(ascending) * percent // 100)]


def _make_rows() -> str:
    """Makes a cluster, people and an audit; returns the secret of a token of everything."""
    from django.contrib.auth import get_user_model  # after setup
    from django.db import connection  # after setup
    from django.utils import timezone  # after setup

    from bench.followed import make_followed  # after setup
    from mqadmin.audit.models import AuditEntry  # after setup
    from mqadmin.ownership.models import Ownership  # after setup
    from mqadmin.tokens.models import ApiToken, digest_of, new_secret  # after setup
    from tests.support.console_rows import make_broker, make_event, make_lag_history  # after setup

    now = timezone.now()
    cluster, groups = make_followed(
        topic_count=TOPIC_COUNT, group_count=GROUP_COUNT, read_topics=READ_TOPICS, queue_count=QUEUE_COUNT, now=now
    )
    make_broker(cluster, now=now)
    for group in groups[:200]:
        make_lag_history(group, now=now, lag_shape="growing")
        make_event(group, "joined", at=now, client_id="c", member_count=1)
    Ownership.objects.bulk_create(
        Ownership(cluster=cluster, kind=kind, name=f"{kind}-{number}", owner=f"team-{number % 50}")
        for kind in ("topic", "group")
        for number in range(GROUP_COUNT)
    )
    AuditEntry.objects.bulk_create(
        (
            AuditEntry(
                number=number,
                previous_hash="0" * 64,
                hash="0" * 64,
                actor=("ann", "bob", "cleo")[number % 3],
                action="create_topic",
                cluster="local",
                subject=f"topic-{number % TOPIC_COUNT}",
                arguments={"topic": f"topic-{number % TOPIC_COUNT}"},
                outcome="failed" if number % 97 == 0 else "done",
                at=now - timedelta(seconds=ENTRY_COUNT - number),
            )
            for number in range(1, ENTRY_COUNT + 1)
        ),
        batch_size=5_000,
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    ann = get_user_model().objects.create_superuser("ann")
    secret = new_secret()
    ends = now + timedelta(days=1)
    ApiToken.objects.create(person=ann, name="all", digest=digest_of(secret), role="admin", expires_at=ends)
    return secret


if __name__ == "__main__":
    main()
