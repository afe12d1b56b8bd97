"""Creating 1,250 topics and 10,000 groups through the admin client: 64 requests in flight, 4, and one after the other.

Every answer comes once its change would survive a power cut: the broker calls `fdatasync`, in a thread, once for all
changes that came during the call before. Beside it the disk's own figure: a line of the same length, written and
flushed again and again by this process, which is the least that one change after the other can take. The disk is that
of the temporary folder (`TMPDIR`): one in memory says nothing.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from remoting.client.admin import Admin
from remoting.client.admin.requests import Limits
from remoting.client.connections import Connections
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.topics import TopicConfig
from tests.support.our_broker import OurBroker

TOPIC_COUNT = 1_250
GROUP_COUNT = 10_000
# As many as one read of a connection hands over, what the admin client allows itself at one broker, one.
IN_FLIGHT = (64, Limits().per_server, 1)
LINE_BYTES = 300
FLUSHES = 500
# Each answer, on a disk that is busy otherwise.
TIMEOUT_MS = 60_000


def main() -> None:
    print(f"{TOPIC_COUNT:,} topics and {GROUP_COUNT:,} groups, each on the disk before it is answered")
    for in_flight in IN_FLIGHT:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            flush_ms = fdatasync_ms(Path(folder))
            with OurBroker(Path(folder) / "store") as broker:
                took_s = asyncio.run(create_all(broker.broker, in_flight))
        count = TOPIC_COUNT + GROUP_COUNT
        flushes = took_s * 1000 / flush_ms / count
        print(
            f"  {in_flight:>3} in flight: {took_s:6.1f} s, {took_s / count * 1e6:6.0f} µs each;"
            f" fdatasync {flush_ms:.2f} ms: {flushes:.1f} of them each",
            flush=True,
        )


def fdatasync_ms(folder: Path) -> float:
    """Returns the median of a flushed line in a file whose space is allocated and written."""
    path = folder / "flushes"
    path.write_bytes(bytes(FLUSHES * LINE_BYTES))
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.fsync(descriptor)
        took_s = []
        for number in range(FLUSHES):
            began_s = time.perf_counter()
            os.pwrite(descriptor, b"x" * LINE_BYTES, number * LINE_BYTES)
            os.fdatasync(descriptor)
            took_s.append(time.perf_counter() - began_s)
    finally:
        os.close(descriptor)
    return statistics.median(took_s) * 1000


async def create_all(address: str, in_flight: int) -> float:
    """Returns the seconds that it takes."""
    connections = Connections()
    admin = Admin(connections, timeout_ms=TIMEOUT_MS, limits=Limits(per_server=in_flight))
    creations: list[Callable[[], Awaitable[None]]] = [
        *(_topic(admin, address, number) for number in range(TOPIC_COUNT)),
        *(_group(admin, address, number) for number in range(GROUP_COUNT)),
    ]
    left = iter(creations)

    async def create_next() -> None:
        for create in left:
            await create()

    began_s = time.perf_counter()
    try:
        await asyncio.gather(*(create_next() for _ in range(in_flight)))
        return time.perf_counter() - began_s
    finally:
        await connections.close()


def _topic(admin: Admin, address: str, number: int) -> Callable[[], Awaitable[None]]:
    return lambda: admin.topics.create(address, TopicConfig(topic_name=f"topic-{number}"))


def _group(admin: Admin, address: str, number: int) -> Callable[[], Awaitable[None]]:
    return lambda: admin.groups.create(address, SubscriptionGroupConfig(group_name=f"group-{number}"))


if __name__ == "__main__":
    main()
