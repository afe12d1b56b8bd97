"""What one scrape of `/metrics` costs with 10,000 groups of 8 queues on 1,000 topics: seconds, bytes, series."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

GROUP_COUNT = 10_000
TOPIC_COUNT = 1_000
QUEUE_COUNT = 8
ROUNDS = 5


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        os.environ["MQADMIN_DATA"] = str(Path(folder) / "data")
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")
        _run()


def _run() -> None:
    """Imports Django only here: its imports need the settings, and those the environment that `main` just made."""
    import django  # after `main`, see above

    django.setup()
    from django.core.management import call_command  # after setup
    from django.utils import timezone  # after setup

    from bench.followed import make_followed  # after setup
    from mqadmin.metrics.collecting import ClustersCollector  # after setup

    call_command("migrate", verbosity=0)
    make_followed(
        topic_count=TOPIC_COUNT,
        group_count=GROUP_COUNT,
        read_topics=TOPIC_COUNT,
        queue_count=QUEUE_COUNT,
        now=timezone.now(),
    )
    collector = ClustersCollector()
    taken: list[float] = []
    text = b""
    for _ in range(ROUNDS):
        began_s, cpu_s = time.perf_counter(), time.process_time()
        text = collector.text()
        taken.append(time.process_time() - cpu_s)
        print(f"scrape: {time.perf_counter() - began_s:.2f} s, {taken[-1]:.2f} s of a core")
    series = sum(not line.startswith(b"#") for line in text.splitlines())
    print(f"{GROUP_COUNT} groups, {TOPIC_COUNT} topics: {len(text) / 1e6:.1f} MB, {series} series")


if __name__ == "__main__":
    main()
