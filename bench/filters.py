"""Measures what filters cost a broker: ours beside Apache RocketMQ 5.4.0, the same client pulling from both.

No filter, a tag expression, a simple and a longer SQL92 expression, each letting through all, a tenth or a thousandth
of the messages. Printed for each case: messages examined per second (those that are kept out count too), and the
broker's processor time per examined message. Every case first runs once, untimed, and its messages are counted.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.clusters import Cluster, apache, processes
from remoting.client.connections import Connections
from remoting.client.outgoing import Message
from remoting.client.producer import Producer
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.heartbeat import ConsumerData, HeartbeatData, SubscriptionData
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.pull import PullMessageHeader, PullMessageResponseHeader
from remoting.wire.headers.typed import read_header, write_header
from remoting.wire.tags import parse_tags
from tests.support.java import require_apache
from tests.support.our_broker import OurBroker

TOPIC = "bench-filters"
QUEUES = 4
MESSAGES_PER_QUEUE = 20_000
MESSAGES_PER_BATCH = 100
BODY = b"x" * 256
# Each case goes round and round for so long.
MEASURED_S = 1.2
# What push consumers ask for at once.
PULLED_AT_ONCE = 32
REQUEST_TIMEOUT_MS = 15_000
# Message `number` has n = number % 1000 and a tag after it.
ROUND = 1000
SHARES = {"100 %": 1000, "10 %": 100, "0.1 %": 1}


@dataclass(frozen=True, slots=True)
class Case:
    """`below`: messages with n < below pass."""

    name: str
    kind: str
    expression: str
    below: int


@dataclass(frozen=True, slots=True)
class Cost:
    looked_at_per_s: float
    cpu_us: float
    cores: float


def cases() -> Iterator[Case]:
    yield Case("none", "TAG", "*", ROUND)
    for share, below in SHARES.items():
        tags = [tag for tag, smallest in (("rare", 0), ("some", 1), ("most", 100)) if smallest < below]
        yield Case(f"TAG {share}", "TAG", " || ".join(tags), below)
    for share, below in SHARES.items():
        yield Case(f"SQL92 simple {share}", "SQL92", f"n < {below}", below)
    for share, below in SHARES.items():
        text = (
            f"(region IN ('eu', 'us') AND n BETWEEN 0 AND {below - 1} AND price > 9.5)"
            " OR (NOT (n >= 0) AND coupon IS NOT NULL) OR (TAGS = 'gone' AND region <> 'eu')"
        )
        yield Case(f"SQL92 longer {share}", "SQL92", text, below)


def main() -> None:
    require_apache()
    ours = measure(lambda folder: OurBroker(folder / "store", "async"))
    theirs = measure(lambda folder: apache(folder, "async"))
    heads = ("messages examined a second", "µs of processor each")
    print(f"{'':<22}{heads[0]:>34}{heads[1]:>34}{'cores':>14}")
    columns = "".join(f"{name:>12}" for name in ("ours", "Apache", "ratio") * 2)
    print(f"{'filter and what passes':<22}{columns}{'ours':>8}{'Apache':>8}")
    for name, our, their in ((name, ours[name], theirs[name]) for name in ours):
        rate, cpu = our.looked_at_per_s / their.looked_at_per_s, our.cpu_us / their.cpu_us
        print(
            f"{name:<22}{our.looked_at_per_s:>12,.0f}{their.looked_at_per_s:>12,.0f}{rate:>12.2f}"
            f"{our.cpu_us:>12.2f}{their.cpu_us:>12.2f}{cpu:>12.2f}{our.cores:>8.2f}{their.cores:>8.2f}",
            flush=True,
        )


def measure(make: Callable[[Path], Cluster]) -> dict[str, Cost]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, make(Path(folder)) as cluster:
        return asyncio.run(_measure(cluster))


async def _measure(cluster: Cluster) -> dict[str, Cost]:
    await _fill(cluster)
    return {case.name: await _cost(cluster, number, case) for number, case in enumerate(cases())}


async def _fill(cluster: Cluster) -> None:
    producer = Producer(cluster.namesrv, "bench-filters", timeout_ms=REQUEST_TIMEOUT_MS)
    await producer.start()
    first_one = _message(0)
    await producer.send(TOPIC, BODY, properties=first_one.properties, tags=first_one.tags)  # it makes the topic
    for queue in await producer.publish_queues(TOPIC):
        for first in range(0, MESSAGES_PER_QUEUE, MESSAGES_PER_BATCH):
            batch = [_message(number) for number in range(first, first + MESSAGES_PER_BATCH)]
            await producer.send_batch(TOPIC, batch, queue=queue)
    await producer.close()


def _message(number: int) -> Message:
    n = number % ROUND
    tag = "rare" if n < 1 else "some" if n < 100 else "most"
    properties = {"n": str(n), "region": ("eu", "us")[n % 2], "price": f"{10 + n / 7:.2f}", "shop": f"shop-{n % 13}"}
    return Message(BODY, tag, f"order-{number}", properties)


async def _cost(cluster: Cluster, number: int, case: Case) -> Cost:
    connections = Connections()
    try:
        puller = Puller(connections, cluster.broker, f"bench-group-{number}", case)
        await puller.join()
        await puller.check()
        spent_s, began_s = _cpu_s(cluster), time.perf_counter()
        looked_at = await puller.go_round(began_s + MEASURED_S)
        took_s, spent_s = time.perf_counter() - began_s, _cpu_s(cluster) - spent_s
        return Cost(looked_at / took_s, spent_s / looked_at * 1e6, spent_s / took_s)
    finally:
        await connections.close()


def _cpu_s(cluster: Cluster) -> float:
    times = [process.cpu_times() for process in map(psutil.Process, processes(cluster))]
    return sum(each.user + each.system for each in times)


class Puller:
    """A group of one member, as the broker sees it: its subscription comes with a heartbeat, its pulls name none."""

    def __init__(self, connections: Connections, address: str, group: str, case: Case) -> None:
        self._connections = connections
        self._address = address
        self._group = group
        self._case = case

    async def join(self) -> None:
        tags = parse_tags(self._case.expression) if self._case.kind == "TAG" else parse_tags("*")
        subscription = SubscriptionData(
            topic=TOPIC,
            sub_string=self._case.expression,
            expression_type=self._case.kind,
            tags_set=list(tags.tags),
            code_set=list(tags.codes),
            sub_version=1,
        )
        consumer = ConsumerData(group_name=self._group, subscription_data_set=[subscription])
        body = write_body(HeartbeatData(client_id=self._group, consumer_data_set=[consumer]))
        answer = await self._ask(Command(code=RequestCode.HEART_BEAT, body=body))
        if answer.code != ResponseCode.SUCCESS:
            raise RuntimeError(f"the broker takes no heartbeat: {answer}")

    async def check(self) -> None:
        """Pulls everything once.

        Raises RuntimeError unless as many messages pass as should, and the one that made the topic.
        """
        passed = sum(await asyncio.gather(*(self._passing(queue) for queue in range(QUEUES))))
        expected = QUEUES * MESSAGES_PER_QUEUE * self._case.below // ROUND + 1
        if passed != expected:
            raise RuntimeError(f"{self._case.name}: {passed} messages came, {expected} should have")

    async def go_round(self, deadline_s: float) -> int:
        """Pulls all queues from their starts again and again; returns how many messages the broker examined."""
        return sum(await asyncio.gather(*(self._queue_rounds(queue, deadline_s) for queue in range(QUEUES))))

    async def _queue_rounds(self, queue: int, deadline_s: float) -> int:
        looked_at = place = 0
        while time.perf_counter() < deadline_s:
            _, following, end = await self._pull(queue, place)
            looked_at += following - place
            place = following if following < end else 0
        return looked_at

    async def _passing(self, queue: int) -> int:
        count = place = 0
        while True:
            body, place, end = await self._pull(queue, place)
            count += _records(body)
            if place >= end:
                return count

    async def _pull(self, queue: int, place: int) -> tuple[bytes, int, int]:
        """Returns the messages, the next offset and the end of the queue."""
        header = PullMessageHeader(
            consumer_group=self._group,
            topic=TOPIC,
            queue_id=queue,
            queue_offset=place,
            max_msg_nums=PULLED_AT_ONCE,
            sys_flag=0,
            commit_offset=0,
            suspend_timeout_millis=0,
            sub_version=1,
        )
        answer = await self._ask(Command(code=RequestCode.PULL_MESSAGE, ext_fields=write_header(header)))
        if answer.code not in (ResponseCode.SUCCESS, ResponseCode.PULL_RETRY_IMMEDIATELY):
            raise RuntimeError(f"queue {queue} cannot be pulled at {place}: {answer}")
        header = read_header(PullMessageResponseHeader, answer.ext_fields)
        return bytes(answer.body), header.next_begin_offset, header.max_offset

    async def _ask(self, command: Command) -> Command:
        return await self._connections.request(self._address, command, REQUEST_TIMEOUT_MS)


def _records(body: bytes) -> int:
    """Returns how many stored messages a body has: each begins with its size."""
    count = place = 0
    while place < len(body):
        place += int.from_bytes(body[place : place + 4], "big")
        count += 1
    return count


if __name__ == "__main__":
    main()
