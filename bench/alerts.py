"""What a look at the rules for alerts costs: 20 rules over 1,000 and 10,000 groups; a cycle is 30 s, a look each 10 s.

Measured are the look in which nothing fires yet, the one in which the alerts of all groups in trouble begin, the same
looks later with nothing new, and one in which every figure moved: seconds and queries. No rule has channels: what is
told is posted by other tasks.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

SIZES = (1_000, 10_000)
QUEUE_COUNT = 8
GROUPS_PER_TOPIC = 10
CYCLE_S = 30
# A look with nothing new is taken so often; the slowest counts.
ROUNDS = 3
# About what, and how many rules: most are about groups, by patterns as teams have them.
ABOUTS = (
    *("verdict", "lag", "behind", "objective", "drain", "dead_letters", "conflict") * 2,
    *("verdict", "lag", "scheduler", "broker", "disk", "cluster"),
)
PATTERNS = ("*", "group-1*", "group-*7")
LAG, BEHIND_S, DRAIN_MINUTES, DEAD, PERCENT = 90_000, 120, 30, 100, 85
THRESHOLDS = {
    "lag": LAG,
    "behind": BEHIND_S,
    "drain": DRAIN_MINUTES,
    "dead_letters": DEAD,
    "scheduler": BEHIND_S,
    "disk": PERCENT,
}


def main() -> None:
    if len(sys.argv) > 1 and sys.argv[1] == "measure":
        _measure(int(sys.argv[2]))
        return
    sizes = [int(word) for word in sys.argv[1:] if word.isdigit()] or SIZES
    head = ("groups", "rules", "alerts", "idle s", "firing s", "steady s", "moved s", "queries", "of the 30 s")
    print("".join(f"{word:>12}" for word in head), flush=True)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for size in sizes:
            # A process has one set of settings, and one database.
            settings = {
                "MQADMIN_DATA": str(Path(folder) / str(size)),
                "MQADMIN_LOG_LEVEL": "error",  # there is no Redis, and every event for open pages would log that
                "DJANGO_SETTINGS_MODULE": "mqadmin.settings",
            }
            command = [sys.executable, "-m", "bench.alerts", "measure", str(size)]
            subprocess.run(command, env={**os.environ, **settings}, check=True)
    print(f"load average {os.getloadavg()[0]:.1f}")


def _measure(size: int) -> None:
    """Imports Django only here: its imports need the settings, and those the environment that `main` made."""
    import django  # after `main`, see above

    django.setup()
    from django.core.management import call_command  # after setup
    from django.db.models import F  # after setup
    from django.utils import timezone  # after setup

    from bench.followed import make_followed  # after setup
    from mqadmin.alerts.models import Alert, AlertRule  # after setup
    from mqadmin.clusters.models import Cluster, Group  # after setup

    call_command("migrate", verbosity=0)
    Cluster.objects.all().delete()
    AlertRule.objects.all().delete()
    now = timezone.now()
    topic_count = max(1, size // GROUPS_PER_TOPIC)
    make_followed(topic_count=topic_count, group_count=size, read_topics=topic_count, queue_count=QUEUE_COUNT, now=now)
    lags = dict(Group.objects.values_list("pk", "lag"))
    verdicts = dict(Group.objects.values_list("pk", "verdict"))
    Group.objects.update(lag=0, verdict="ok", behind_since=None, allowed_lag_s=60)
    _make_rules(now)
    idle_s, idle_queries = _look(now)
    assert not Alert.objects.exists(), "nothing is wrong yet"
    groups = list(Group.objects.all())
    for group in groups:
        group.lag, group.verdict = lags[group.pk], verdicts[group.pk]
        group.behind_since = now - timedelta(seconds=2 * BEHIND_S) if group.lag and group.lag >= LAG else None
    Group.objects.bulk_update(groups, ["lag", "verdict", "behind_since"], batch_size=500)
    number, firing_s, firing_queries, fired = 1, 0.0, 0, -1
    # Alerts that begin are bounded in each look.
    while fired < (fired := Alert.objects.count()):
        seconds, queries = _look(now + timedelta(seconds=10 * number))
        firing_s, firing_queries, number = max(firing_s, seconds), max(firing_queries, queries), number + 1
    steady = [_look(now + timedelta(seconds=10 * (number + each))) for each in range(ROUNDS)]
    Group.objects.update(lag=F("lag") * 2)
    moved_s, moved_queries = _look(now + timedelta(seconds=10 * (number + ROUNDS)))
    steady_s = max(seconds for seconds, _ in steady)
    worst_s = max(idle_s, firing_s, steady_s, moved_s)
    queries = f"{min(idle_queries, *(count for _, count in steady))}-{max(firing_queries, moved_queries)}"
    print(
        f"{size:>12,}{len(ABOUTS):>12}{fired:>12,}{idle_s:>12.2f}{firing_s:>12.2f}{steady_s:>12.2f}{moved_s:>12.2f}"
        f"{queries:>12}{CYCLE_S / worst_s:>11.1f}x",
        flush=True,
    )


def _make_rules(now: datetime) -> None:
    from mqadmin.alerts.models import AlertRule  # after setup

    for number, about in enumerate(ABOUTS):
        AlertRule.objects.create(
            name=f"rule-{number}",
            about=about,
            names=PATTERNS[number % len(PATTERNS)] if about not in ("scheduler", "broker", "disk", "cluster") else "*",
            verdicts=["stalled", "stopped"] if about == "verdict" else [],
            threshold=THRESHOLDS.get(about, 0),
            window_minutes=60 if about == "dead_letters" else 0,
            made_by="bench",
            made_at=now,
        )


def _look(now: datetime) -> tuple[float, int]:
    """Returns how long one look took, and its queries."""
    from django.db import connection  # after setup
    from django.test.utils import CaptureQueriesContext  # after setup

    from mqadmin.alerts.evaluating import evaluate  # after setup
    from mqadmin.clusters.models import Cluster  # after setup

    Cluster.objects.update(last_synced_at=now, last_tried_at=now)
    with CaptureQueriesContext(connection) as queries:
        began_s = time.perf_counter()
        assert evaluate(now), "somebody else looks"
        took_s = time.perf_counter() - began_s
    return took_s, len(queries)


if __name__ == "__main__":
    main()
