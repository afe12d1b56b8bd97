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
    from prometheus_client import CollectorRegistry, generate_latest  # beside the collector

    from mqadmin.metrics.collecting import ClustersCollector  # after setup

    call_command("migrate", verbosity=0)
    _make_rows()
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ClustersCollector())
    taken: list[float] = []
    text = b""
    for _ in range(ROUNDS):
        began_s, cpu_s = time.perf_counter(), time.process_time()
        text = generate_latest(registry)
        taken.append(time.process_time() - cpu_s)
        print(f"scrape: {time.perf_counter() - began_s:.2f} s, {taken[-1]:.2f} s of a core")
    series = sum(not line.startswith(b"#") for line in text.splitlines())
    print(f"{GROUP_COUNT} groups, {TOPIC_COUNT} topics: {len(text) / 1e6:.1f} MB, {series} series")


def _make_rows() -> None:
    from django.utils import timezone  # after setup

    from mqadmin.clusters.models import Group, QueueOffset, Topic, TopicQueue  # after setup
    from tests.support.console_rows import make_cluster  # after setup

    now = timezone.now()
    cluster = make_cluster(now=now)
    topics = Topic.objects.bulk_create(
        Topic(cluster=cluster, name=f"topic-{number}", seen_at=now) for number in range(TOPIC_COUNT)
    )
    TopicQueue.objects.bulk_create(
        TopicQueue(topic=topic, broker_name="broker-a", queue_id=each, min_offset=0, max_offset=1000, seen_at=now)
        for topic in topics
        for each in range(QUEUE_COUNT)
    )
    groups = Group.objects.bulk_create(
        Group(
            cluster=cluster,
            name=f"group-{number}",
            message_model="CLUSTERING",
            member_count=2,
            lag=80,
            behind_since=now,
            out_per_s=1.5,
            seen_at=now,
        )
        for number in range(GROUP_COUNT)
    )
    QueueOffset.objects.bulk_create(
        QueueOffset(
            group=group,
            topic_name=topics[number % TOPIC_COUNT].name,
            broker_name="broker-a",
            queue_id=each,
            committed_offset=990,
            seen_at=now,
        )
        for number, group in enumerate(groups)
        for each in range(QUEUE_COUNT)
    )


if __name__ == "__main__":
    main()
