"""What one cycle of following costs, at 100, 1,000 and 10,000 groups of 8 queues: ours by watch, Apache's by polling.

A topic has 8 queues and 10 groups that read it; each group has its retry topic besides, with one queue and an offset of
its own, as every group has whose members ever came. Three cycles each: the first, which makes all rows; one in which
every group committed on every queue since; and one without news. Seconds are from the question (ours: from the last
commit) until the rows are written, on a SQLite file; processor time is that of following alone. Of Apache also how
long a turn over all groups takes. Apache's broker starts on files with these topics, groups and offsets; on ours they
are made by requests.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remoting.client.admin import Admin
from remoting.client.admin.requests import Limits
from remoting.client.connections import Connections
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.names import retry_topic
from tests.support.apache import ApacheRocketMQ
from tests.support.java import require_apache
from tests.support.our_broker import OurBroker

if TYPE_CHECKING:
    from mqadmin.clusters.models import Cluster

SIZES = (100, 1_000, 10_000)
QUEUE_COUNT = 8
TOPIC_PREFIX = "topic-"
GROUPS_PER_TOPIC = 10
IN_FLIGHT = 64
WRITTEN_WITHIN_S = 600.0
# An idle watch is asked again each half minute; what that cost is written once a minute.
IDLE_S = 120.0


def main() -> None:
    sizes = tuple(int(text) for text in os.environ.get("BENCH_SIZES", "").split(",") if text) or SIZES
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        os.environ["MQADMIN_DATA"] = str(folder / "data")
        os.environ["MQADMIN_LOG_LEVEL"] = "error"  # there is no Redis, and every event for open pages would log that
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")
        import django  # the settings come from the environment that was just made

        django.setup()
        from django.core.management import call_command  # after setup

        call_command("migrate", verbosity=0)
        print(f"{'':<34}{'requests':>10}{'seconds':>10}{'of them CPU':>13}")
        for size in sizes:
            _ours(folder / f"ours-{size}", size)
            _apache(folder / f"apache-{size}", size)


def _ours(folder: Path, size: int) -> None:
    from django.db.models import Max, Sum  # after setup
    from django.utils import timezone  # after setup

    from mqadmin.clusters.models import Cluster, QueueOffset, RequestCost  # after setup
    from tests.support.follower import follower_thread  # after setup

    with OurBroker(folder, flush="async") as broker:
        asyncio.run(_fill(broker.broker, size))
        cluster = Cluster.objects.create(name=f"ours-{size}", namesrv=broker.namesrv)

        def costs(after: datetime) -> tuple[int, datetime, float]:
            """Returns the requests so far, once they are written later than `after`, the moment, and our time."""
            began_s = time.monotonic()
            while True:
                rows = RequestCost.objects.filter(cluster=cluster)
                total = rows.aggregate(count=Sum("request_count"), at=Max("updated_at"))
                if total["at"] is not None and total["at"] > after:
                    return total["count"], total["at"], _others_cpu_s()
                if time.monotonic() - began_s > WRITTEN_WITHIN_S:
                    raise TimeoutError("costs: not written")
                time.sleep(0.5)

        def is_written(offset: int) -> bool:
            rows = QueueOffset.objects.filter(group__cluster=cluster, committed_offset=offset)
            return rows.filter(topic_name__startswith=TOPIC_PREFIX).count() == size * QUEUE_COUNT

        def measure(what: str, offset: int, cpu_s: float) -> None:
            began_s = time.monotonic()
            while not is_written(offset):
                if time.monotonic() - began_s > WRITTEN_WITHIN_S:
                    raise TimeoutError(f"{what}: not written")
                time.sleep(0.1)
            _print(f"ours, {size:,} groups, {what}", None, time.monotonic() - began_s, _others_cpu_s() - cpu_s)

        with follower_thread(stopped_within_s=60):
            measure("first", 0, _others_cpu_s())
        # Nobody follows meanwhile, so that one answer tells of all: else it would be as many as there is time for.
        asyncio.run(_commit(broker.broker, size, 1))
        cpu_s = _others_cpu_s()
        with follower_thread(stopped_within_s=60):
            measure("all moved", 1, cpu_s)
            # The first costs are of the commits; the pause that these were worth is over when the next are written.
            _, begun, _ = costs(timezone.now())
            before, begun, cpu_s = costs(begun)
            after, ended, ended_cpu_s = costs(begun + timedelta(seconds=IDLE_S - 1))
            per_30_s = 30 / (ended - begun).total_seconds()
            what = f"ours, {size:,} groups, idle 30 s"
            _print(what, (after - before) * per_30_s, 30.0, (ended_cpu_s - cpu_s) * per_30_s)
        cluster.delete()


def _apache(folder: Path, size: int) -> None:
    from django.utils import timezone  # after setup

    from mqadmin.clusters.models import Cluster, ClusterKind  # after setup
    from mqadmin.observing import polling_cycle  # after setup

    require_apache()
    broker = ApacheRocketMQ(folder)
    _write_files(folder / "store" / "config", size)
    with broker:
        cluster = Cluster.objects.create(name=f"apache-{size}", namesrv=broker.namesrv, kind=ClusterKind.APACHE)

        def measure(what: str) -> None:
            began_s, cpu_s = time.monotonic(), time.process_time()
            polling_cycle.poll_once(cluster, timezone.now())
            cluster.refresh_from_db()
            seconds, cpu_s = time.monotonic() - began_s, time.process_time() - cpu_s
            _print(f"Apache, {size:,} groups, {what}", cluster.cycle_request_count, seconds, cpu_s)

        measure("first")
        _sample_everything(cluster)
        _print_turn(cluster)
        asyncio.run(_commit(broker.broker, size, 1))
        measure("all moved")
        _sample_everything(cluster)
        measure("no news")
        cluster.delete()


def _sample_everything(cluster: Cluster) -> None:
    """Polls until the ends of every topic were asked for, which the budget spreads over some cycles, and rates fell."""
    from django.utils import timezone  # after setup

    from mqadmin.observing import polling, polling_cycle  # after setup

    for _ in range(2 + cluster.topics.count() * 2 // polling.REQUESTS_PER_CYCLE_MAX):
        polling_cycle.poll_once(cluster, timezone.now())
        cluster.refresh_from_db()


def _print_turn(cluster: Cluster) -> None:
    """Polls until every group was asked for its members anew, and prints how long that takes at one cycle in 15 s."""
    from django.utils import timezone  # after setup

    from mqadmin.observing import polling_cycle  # after setup

    begun, cycle_count = timezone.now(), 0
    while cluster.groups.exclude(members_seen_at__gte=begun).exists():
        polling_cycle.poll_once(cluster, timezone.now())
        cluster.refresh_from_db()
        cycle_count += 1
    seconds = cycle_count * polling_cycle.POLL_INTERVAL_S
    print(f"{'':<40}all groups asked for members in {cycle_count} cycles: {seconds} s", flush=True)


def _others_cpu_s() -> float:
    """Returns the processor time of the other threads, the follower's: this one commits, and looks what is written."""
    return time.process_time() - time.thread_time()


def _print(what: str, requests: float | None, seconds: float, cpu_s: float) -> None:
    asked = "" if requests is None else f"{requests:.1f}"
    print(f"{what:<40}{asked:>8}{seconds:>10.2f}{cpu_s:>10.2f}", flush=True)


def _topic_of(group: int) -> str:
    return f"{TOPIC_PREFIX}{group // GROUPS_PER_TOPIC}"


def _queues_of(group: int) -> Iterator[tuple[str, int]]:
    """Yields what the group commits for: its topic's queues, and that of its retry topic."""
    yield from ((_topic_of(group), queue_id) for queue_id in range(QUEUE_COUNT))
    yield retry_topic(f"group-{group}"), 0


def _topics(size: int) -> Iterator[tuple[str, int]]:
    """Yields all topics with their number of queues."""
    yield from ((_topic_of(group), QUEUE_COUNT) for group in range(0, size, GROUPS_PER_TOPIC))
    yield from ((retry_topic(f"group-{group}"), 1) for group in range(size))


def _write_files(config: Path, size: int) -> None:
    """Writes what a broker of Apache's with these topics, groups and offsets has on its disk."""
    version = {"counter": 1, "stateVersion": 0, "timestamp": 0}
    topics = {
        topic: {
            "topicName": topic,
            "readQueueNums": queue_count,
            "writeQueueNums": queue_count,
            "perm": 6,
            "topicFilterType": "SINGLE_TAG",
        }
        for topic, queue_count in _topics(size)
    }
    groups = {f"group-{group}": {"groupName": f"group-{group}"} for group in range(size)}
    offsets: dict[str, dict[int, int]] = {}
    for group in range(size):
        for topic, queue_id in _queues_of(group):
            offsets.setdefault(f"{topic}@group-{group}", {})[queue_id] = 0
    config.mkdir(parents=True)
    for name, document in {
        "topics": {"topicConfigTable": topics, "dataVersion": version},
        "subscriptionGroup": {"subscriptionGroupTable": groups, "dataVersion": version},
        "consumerOffset": {"offsetTable": offsets, "dataVersion": version},
    }.items():
        (config / f"{name}.json").write_text(json.dumps(document))


async def _fill(address: str, size: int) -> None:
    async def each(admin: Admin) -> None:
        await _together(
            admin.topics.create(
                address, TopicConfig(topic_name=topic, read_queue_nums=queue_count, write_queue_nums=queue_count)
            )
            for topic, queue_count in _topics(size)
        )
        await _together(
            admin.groups.create(address, SubscriptionGroupConfig(group_name=f"group-{group}")) for group in range(size)
        )

    await _as_admin(each)
    await _commit(address, size, 0)


async def _commit(address: str, size: int, offset: int) -> None:
    """Commits for every group on every queue, that of its retry topic, too."""

    async def each(admin: Admin) -> None:
        await _together(
            admin.offsets.commit(address, f"group-{group}", topic, queue_id, offset)
            for group in range(size)
            for topic, queue_id in _queues_of(group)
        )

    await _as_admin(each)


async def _as_admin(act: Callable[[Admin], Awaitable[None]]) -> None:
    connections = Connections()
    await act(Admin(connections, limits=Limits(per_server=IN_FLIGHT)))
    await connections.close()


async def _together(calls: Iterator[Awaitable[Any]]) -> None:
    """Awaits all, IN_FLIGHT at once."""

    async def work() -> None:
        for call in calls:
            await call

    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))


if __name__ == "__main__":
    sys.exit(main())
