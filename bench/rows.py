"""Counts rows that the console writes a second while 100 groups read 8 queues of one busy topic, and while idle.

Our broker is a process of its own; a producer sends 200 messages a second, and every group commits each of its queues
every 5 s, as consumers do. The console's follower runs in this process, on a SQLite file. Counted are the rows that
SQLite changed (`total_changes` of each connection), by table.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from remoting.client.admin import Admin
from remoting.client.connections import Connections
from remoting.client.producer import Producer
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.topics import TopicConfig

GROUP_COUNT = 100
QUEUE_COUNT = 8
MESSAGES_PER_S = 200
COMMIT_INTERVAL_S = 5.0
# Groups and their rows come first; what comes then is counted.
WARM_UP_S = 15.0
COUNTED_S = 30.0
# After the last message rates fall to 0, and verdicts are judged once more.
CALM_AFTER_S = 60.0
IDLE_S = 30.0
_TABLE = re.compile(r'(?:INSERT INTO|UPDATE|DELETE FROM) "mq_(\w+)"')


class RowCount:
    """By table, of all connections that are opened from now on."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        # SQLite counts the rows of a statement when its last row was read: at the connection's next statement.
        self._last: dict[int, tuple[int, str]] = {}

    def watch(self, connection: Any, **_: object) -> None:
        """Counts on this connection from now on (a receiver of `connection_created`)."""
        if self._count not in connection.execute_wrappers:
            connection.execute_wrappers.append(self._count)

    def taken(self) -> Counter[str]:
        """Returns the counts since the last call."""
        counts, self._counts = self._counts, Counter()
        return counts

    def _count(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        connection = context["connection"].connection
        changed, table = self._last.get(id(connection), (0, ""))
        if connection.total_changes > changed:
            self._counts[table] += connection.total_changes - changed
        found = _TABLE.match(sql)
        self._last[id(connection)] = (connection.total_changes, found[1] if found else "")
        return execute(sql, params, many, context)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        os.environ["MQADMIN_DATA"] = str(Path(folder) / "data")
        os.environ["MQADMIN_LOG_LEVEL"] = "error"  # there is no Redis, and every event for open pages would log that
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")
        _run(Path(folder))


def _run(folder: Path) -> None:
    """Imports Django only here: its imports need the settings, and those the environment that `main` just made."""
    import django  # after `main`, see above

    django.setup()
    from django.core.management import call_command  # after setup
    from django.db.backends.signals import connection_created  # after setup

    from mqadmin.clusters.models import Cluster  # after setup
    from tests.support.follower import follower_thread  # after setup
    from tests.support.our_broker import OurBroker  # after setup

    call_command("migrate", verbosity=0)
    rows = RowCount()
    connection_created.connect(rows.watch)
    with OurBroker(folder / "store") as broker:
        Cluster.objects.create(name="local", namesrv=broker.namesrv)
        with follower_thread(stopped_within_s=30):
            stop = threading.Event()
            traffic = threading.Thread(target=lambda: asyncio.run(_traffic(broker.namesrv, broker.broker, stop)))
            traffic.start()
            time.sleep(WARM_UP_S)
            rows.taken()
            time.sleep(COUNTED_S)
            busy = rows.taken()
            stop.set()
            traffic.join()
            time.sleep(CALM_AFTER_S)
            rows.taken()
            time.sleep(IDLE_S)
            _print("busy: rows a second", busy, COUNTED_S)
            _print("idle: rows a second", rows.taken(), IDLE_S)


def _print(title: str, counts: Counter[str], seconds: float) -> None:
    print(f"{title:<44}{counts.total() / seconds:>10.1f}")
    for table, count in counts.most_common():
        print(f"    {table:<40}{count / seconds:>10.1f}")


async def _traffic(namesrv: str, address: str, stop: threading.Event) -> None:
    """Sends, and commits for every group what was sent by then; one group and queue after the other, evenly in time."""
    connections = Connections()
    admin = Admin(connections)
    config = TopicConfig(topic_name="orders", read_queue_nums=QUEUE_COUNT, write_queue_nums=QUEUE_COUNT)
    await admin.topics.create(address, config)
    for group in range(GROUP_COUNT):
        await admin.groups.create(address, SubscriptionGroupConfig(group_name=f"group-{group}"))
    producer = Producer(namesrv, "bench")
    await producer.start()
    sent = 0

    async def send() -> None:
        nonlocal sent
        while not stop.is_set():
            await producer.send("orders", b"x" * 100)
            sent += 1
            await asyncio.sleep(1 / MESSAGES_PER_S)

    async def commit() -> None:
        pairs = [(group, queue_id) for queue_id in range(QUEUE_COUNT) for group in range(GROUP_COUNT)]
        while not stop.is_set():
            for group, queue_id in pairs:
                await admin.offsets.commit(address, f"group-{group}", "orders", queue_id, sent // QUEUE_COUNT)
                await asyncio.sleep(COMMIT_INTERVAL_S / len(pairs))

    await asyncio.gather(send(), commit())
    await producer.close()
    await connections.close()


if __name__ == "__main__":
    main()
