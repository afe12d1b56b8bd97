"""What one follower costs that follows 50 separate clusters of ours, idle and with a message a second in each.

Every cluster is a broker process of its own with 10 topics of 4 queues and 5 groups; the follower is a process as its
Celery worker is, without Celery and Redis: it reads and writes a SQLite file. Requests are those that it counts itself.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psutil

from remoting.client.admin import Admin
from remoting.client.connections import Connections
from remoting.client.producer import Producer
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.topics import TopicConfig
from tests.support.our_broker import OurBroker

CLUSTER_COUNT = 50
TOPIC_COUNT = 10
GROUP_COUNT = 5
FOLLOWED_WITHIN_S = 180.0
# The costs of the beginning are written by then; requests are counted in whole minutes.
CALM_AFTER_S = 70.0
MEASURED_S = 120.0


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        os.environ["MQADMIN_DATA"] = str(folder / "data")
        os.environ["MQADMIN_LOG_LEVEL"] = "error"  # there is no Redis, and every event for open pages would log that
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")
        with ExitStack() as stack:
            # Kept to the end: a process ends with the thread that started it.
            pool = stack.enter_context(ThreadPoolExecutor(4))
            brokers = list(pool.map(lambda number: _started(folder, number, stack), range(CLUSTER_COUNT)))
            asyncio.run(_fill(brokers))
            _run(brokers)


def _started(folder: Path, number: int, stack: ExitStack) -> OurBroker:
    """Starts one; again where another process took its port meanwhile, as happens with so many."""
    for attempt in range(5):
        broker = OurBroker(folder / f"store-{number}-{attempt}", flush="async")
        stack.callback(broker.stop)
        try:
            return broker.start()
        except AssertionError as error:
            print(error, file=sys.stderr)
    raise RuntimeError("no broker started")


def follow() -> None:
    """Follows until standard input ends: the other process of this benchmark."""
    import django  # the settings come from the environment

    django.setup()
    from tests.support.follower import follower_thread  # after setup

    with follower_thread(stopped_within_s=60):
        sys.stdin.read()


def _run(brokers: Sequence[OurBroker]) -> None:
    """Imports Django only here: its imports need the settings, and those the environment that `main` just made."""
    import django  # after `main`, see above

    django.setup()
    from django.core.management import call_command  # after setup
    from django.db.models import Sum  # after setup

    from mqadmin.clusters.models import Cluster, RequestCost  # after setup

    def requests() -> int:
        return RequestCost.objects.aggregate(total=Sum("request_count"))["total"] or 0

    def measure(what: str) -> None:
        time.sleep(CALM_AFTER_S)
        before, before_s, asked = process.cpu_times(), time.monotonic(), requests()
        time.sleep(MEASURED_S)
        after, seconds = process.cpu_times(), time.monotonic() - before_s
        cores = (after.user + after.system - before.user - before.system) / seconds
        rate, rss_mb = (requests() - asked) / seconds, process.memory_info().rss / 1e6
        print(f"{what:<40}{rate:>8.2f} requests/s{cores:>8.3f} cores{rss_mb:>8.0f} MB RSS", flush=True)

    call_command("migrate", verbosity=0)
    Cluster.objects.bulk_create(
        Cluster(name=f"shop-{number}", namesrv=broker.namesrv) for number, broker in enumerate(brokers)
    )
    command = [sys.executable, "-c", "from bench.following import follow; follow()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        process = psutil.Process(child.pid)
        began_s = time.monotonic()
        while Cluster.objects.filter(state="reachable").count() < CLUSTER_COUNT:
            if time.monotonic() - began_s > FOLLOWED_WITHIN_S:
                raise TimeoutError("not all clusters are followed")
            time.sleep(0.2)
        print(f"{'start until all are followed':<40}{time.monotonic() - began_s:>8.1f} s", flush=True)
        measure(f"{CLUSTER_COUNT} clusters, idle")
        traffic = subprocess.Popen(
            [sys.executable, "-c", "from bench.following import send; send()", *(one.namesrv for one in brokers)]
        )
        try:
            measure("a message a second in each")
        finally:
            traffic.terminate()
            traffic.wait()
            assert child.stdin is not None
            child.stdin.close()


def send() -> None:
    """Sends to every name server of the arguments a message a second, until it is ended."""
    asyncio.run(_send(sys.argv[1:]))


async def _send(namesrvs: Sequence[str]) -> None:
    async def to(namesrv: str) -> None:
        producer = Producer(namesrv, "bench", timeout_ms=10_000)
        await producer.start()
        while True:
            await producer.send("topic-0", b"x" * 100)
            await asyncio.sleep(1.0)

    await asyncio.gather(*(to(namesrv) for namesrv in namesrvs))


async def _fill(brokers: Sequence[OurBroker]) -> None:
    connections = Connections()
    admin = Admin(connections)
    for broker in brokers:
        for number in range(TOPIC_COUNT):
            config = TopicConfig(topic_name=f"topic-{number}", read_queue_nums=4, write_queue_nums=4)
            await admin.topics.create(broker.broker, config)
        for number in range(GROUP_COUNT):
            await admin.groups.create(broker.broker, SubscriptionGroupConfig(group_name=f"group-{number}"))
    await connections.close()


if __name__ == "__main__":
    main()
