"""Measures how late delayed messages come while 100,000 others wait, on our broker and on Apache.

Ours is measured twice: with its own scheduler, and with one in a Celery worker.

Half of those that wait have a delay level, half a time of their own (`TIMER_DELIVER_MS`), all hours away. Then, for
some seconds, messages of both kinds are sent that fall due at once. Lateness is the store timestamp of the delivered
message minus its due time, so it does not depend on how anybody consumes; for a level the way to the broker is in it.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.clusters import Cluster, apache
from remoting.client.admin import Admin
from remoting.client.connections import Connections
from remoting.client.producer import Producer
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.pull import SUBSCRIPTION_FLAG, PullMessageHeader, PullMessageResponseHeader
from remoting.wire.headers.typed import read_header, write_header
from remoting.wire.properties import Property
from remoting.wire.stored_message import decode_messages
from tests.support.celery_worker import CeleryWorker
from tests.support.java import require_apache
from tests.support.our_broker import OurBroker
from tests.support.redis_server import RedisServer

TOPIC = "bench-delays"
WAITING = 100_000
WAITING_TOPIC = "bench-waiting"
SENDERS = 128
BODY = b"x" * 256
# Level 18 is 2 h; the others wait between one hour and two days.
LONG_LEVEL = "18"
LONG_DELAY_S = (3_600, 172_800)
MEASURED_S = 6.0
# So often a pair is sent: one of level 1, which is 1 s, and one due within these ms.
PAIR_EVERY_S = 0.004
LEVEL_MS = 1_000
OWN_TIME_MS = (500, 2_500)
ARRIVED_WITHIN_S = 15.0
TIMEOUT_MS = 15_000
PULLED_AT_ONCE = 32
KINDS = {"level": "delay level 1", "time": "a time of its own"}


@dataclass(frozen=True, slots=True)
class Lateness:
    """ms, sorted; of `sent` messages."""

    late_ms: list[int]
    sent: int

    def share(self, share: float) -> int:
        return self.late_ms[min(len(self.late_ms) - 1, int(len(self.late_ms) * share))] if self.late_ms else -1


def main() -> None:
    require_apache()
    heads = "".join(f"{head:>8}" for head in ("min", "p50", "p99", "max"))
    print(f"{f'{WAITING:,} waiting; ms late':<44}{'came':>12}{heads}{'p99 ours/Apache':>18}")
    theirs = measure(_apache)
    runs = {"Apache": theirs, "ours, --scheduler internal": measure(_ours), "ours, Celery": measure(_ours_on_celery)}
    for kind, what in KINDS.items():
        for name, run in runs.items():
            ratio = run[kind].share(0.99) / max(1, theirs[kind].share(0.99))
            _print_row(f"{what}: {name}", run[kind], f"{ratio:.3f}" if run is not theirs else "")


def _print_row(name: str, lateness: Lateness, ratio: str) -> None:
    came = f"{len(lateness.late_ms)}/{lateness.sent}"
    figures = "".join(f"{lateness.share(share):>8,}" for share in (0, 0.5, 0.99, 1))
    print(f"{name:<44}{came:>12}{figures}{ratio:>18}", flush=True)


@contextmanager
def _apache(folder: Path) -> Iterator[Cluster]:
    with apache(folder, "async") as cluster:
        yield cluster


@contextmanager
def _ours(folder: Path) -> Iterator[Cluster]:
    with OurBroker(folder / "store", "async", arguments=("--scheduler=internal",)) as cluster:
        yield cluster


@contextmanager
def _ours_on_celery(folder: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        redis = stack.enter_context(RedisServer(folder))
        cluster = stack.enter_context(OurBroker(folder / "store", "async", arguments=("--scheduler=celery",)))
        env = {"REDIS_URL": redis.url, "MQADMIN_NAMESRV": cluster.namesrv, "MQADMIN_DATA": str(folder / "data")}
        stack.enter_context(CeleryWorker("bench", "scheduler", folder, env))
        yield cluster


def measure(make: Callable[[Path], AbstractContextManager[Cluster]]) -> dict[str, Lateness]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, make(Path(folder)) as cluster:
        return asyncio.run(_measure(cluster))


async def _measure(cluster: Cluster) -> dict[str, Lateness]:
    producer = Producer(cluster.namesrv, "bench-delays", timeout_ms=TIMEOUT_MS)
    await producer.start()
    connections = Connections()
    try:
        await _let_wait(producer)
        await producer.send(TOPIC, BODY)  # the topic is made of it
        queues = await producer.publish_queues(TOPIC)
        sent = await _send_pairs(producer)
        await _await_arrival(Admin(connections), cluster.broker, queues, 2 * sent + 1)
        arrived = [late for queue in queues for late in await _arrived(connections, cluster.broker, queue)]
    finally:
        await producer.close()
        await connections.close()
    return {kind: Lateness(sorted(late for other, late in arrived if other == kind), sent) for kind in KINDS}


async def _let_wait(producer: Producer) -> None:
    async def send_some(count: int) -> None:
        for number in range(count):
            if number % 2:
                due_ms = _now_ms() + 1000 * random.randint(*LONG_DELAY_S)
                properties = {Property.TIMER_DELIVER_MS: str(due_ms)}
            else:
                properties = {Property.DELAY: LONG_LEVEL}
            await producer.forward(WAITING_TOPIC, BODY, properties)

    await producer.send(WAITING_TOPIC, BODY)
    await asyncio.gather(*(send_some(WAITING // SENDERS + 1) for _ in range(SENDERS)))


async def _send_pairs(producer: Producer) -> int:
    """Sends pairs for `MEASURED_S`; returns how many."""
    began_s = time.perf_counter()
    pairs = int(MEASURED_S / PAIR_EVERY_S)
    async with asyncio.TaskGroup() as group:
        for number in range(pairs):
            group.create_task(_send_due(producer, "level", LEVEL_MS, {Property.DELAY: "1"}))
            due_in_ms = random.randint(*OWN_TIME_MS)
            timer = {Property.TIMER_DELIVER_MS: str(_now_ms() + due_in_ms)}
            group.create_task(_send_due(producer, "time", due_in_ms, timer))
            await asyncio.sleep(max(0, began_s + (number + 1) * PAIR_EVERY_S - time.perf_counter()))
    return pairs


async def _send_due(producer: Producer, kind: str, due_in_ms: int, properties: dict[str, str]) -> None:
    due_ms = int(properties.get(Property.TIMER_DELIVER_MS, _now_ms() + due_in_ms))
    await producer.forward(TOPIC, f"{kind} {due_ms}".encode(), properties)


async def _await_arrival(admin: Admin, address: str, queues: tuple[MessageQueue, ...], expected: int) -> None:
    """Waits until all `expected` messages have come, or for a time; what has not come by then is printed as missing."""
    deadline_s = time.perf_counter() + ARRIVED_WITHIN_S
    while time.perf_counter() < deadline_s:
        ends = [await admin.offsets.max(address, TOPIC, queue.queue_id) for queue in queues]
        if sum(ends) >= expected:
            return
        await asyncio.sleep(0.1)


async def _arrived(connections: Connections, address: str, queue: MessageQueue) -> list[tuple[str, int]]:
    """Returns (kind, ms late) of all messages of a queue."""
    arrived: list[tuple[str, int]] = []
    place = 0
    while True:
        header = PullMessageHeader(
            consumer_group="TOOLS_CONSUMER",
            topic=TOPIC,
            queue_id=queue.queue_id,
            queue_offset=place,
            max_msg_nums=PULLED_AT_ONCE,
            sys_flag=SUBSCRIPTION_FLAG,
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription="*",
            sub_version=0,
        )
        request = Command(code=RequestCode.PULL_MESSAGE, ext_fields=write_header(header))
        answer = await connections.request(address, request, TIMEOUT_MS)
        if answer.code != ResponseCode.SUCCESS:
            return arrived
        for message in decode_messages(answer.body):
            kind, _, due_ms = message.body.decode().partition(" ")
            if kind in KINDS:
                arrived.append((kind, message.store_timestamp_ms - int(due_ms)))
        place = read_header(PullMessageResponseHeader, answer.ext_fields).next_begin_offset


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    main()
