"""One group in order, of Java and Python members that join, leave and are killed: on our broker and on Apache's.

Both clusters live at the same time, since the locks of a killed member are waited for: 60 s.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from consumer.engine.message import Message
from remoting.wire.bodies.message_queue import MessageQueue
from tests.journeys.shop import ALL_QUEUES, WARM_UP, Shop
from tests.support.apache import ApacheRocketMQ
from tests.support.java import require_driver
from tests.support.java_client import JavaClient
from tests.support.our_broker import OurBroker
from tests.support.waiting import WITHIN_S, eventually

pytestmark = [pytest.mark.journey, pytest.mark.java]

VERSION = "5.4.0"
JAVA = "java"
# A listener's work; long enough that two of a queue beside each other would be seen.
WORK_S = 0.005
SEND_PAUSE_S = 0.02
LOCKS_EXPIRE_WITHIN_S = 60.0
# Of what a killed member consumed: its last commits (each second, see the driver; later on a busy machine) and what it
# was in.
SURELY_COMMITTED_MS = 15_000


@dataclass(frozen=True, slots=True)
class Call:
    """A listener's call; times in ms since the epoch, by one machine's clock."""

    member: str
    queue_id: int
    number: int
    began_ms: float
    ended_ms: float


class Line:
    """What Python's members were called for. `Line.listener` is the listener of one of them."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def listener(self, member: str) -> Callable[[Message], object]:
        async def listen(message: Message) -> None:
            if message.text == WARM_UP:
                return
            began_ms = time.time() * 1000
            await asyncio.sleep(WORK_S)
            queue_id, number = map(int, message.text.split("/"))
            self.calls.append(Call(member, queue_id, number, began_ms, time.time() * 1000))

        return listen


class Sender:
    """Sends on and on, to each queue numbers in order, until `stop`."""

    def __init__(self, shop: Shop, queues: list[MessageQueue]) -> None:
        self._shop = shop
        self._queues = queues
        self.sent: dict[int, int] = defaultdict(int)
        self._is_stopping = False
        self._task = asyncio.create_task(self._run(), name="sender")

    async def _run(self) -> None:
        for queue in itertools.cycle(self._queues):
            if self._is_stopping:
                return
            number = self.sent[queue.queue_id]
            body = f"{queue.queue_id}/{number}".encode()
            await self._shop.producer.send(self._shop.topic, body, queue=queue)
            self.sent[queue.queue_id] += 1
            await asyncio.sleep(SEND_PAUSE_S)

    async def stop(self) -> None:
        """Returns when the last send was answered: one that is cut off may be stored all the same."""
        self._is_stopping = True
        await self._task


def java_calls(java: JavaClient) -> list[Call]:
    """Of calls that ended."""
    ended = {(event["msg_id"], event["batch"]): event["at_ms"] for event in java.events("finished", JAVA)}
    calls = []
    for event in java.consumed(JAVA):
        end_ms = ended.get((event["msg_id"], event["batch"]))
        if event["body"] != WARM_UP and end_ms is not None:
            queue_id, number = map(int, event["body"].split("/"))
            calls.append(Call(JAVA, queue_id, number, event["at_ms"], end_ms))
    return calls


def check(calls: list[Call], sent: dict[int, int], killed_ms: float) -> None:
    for queue_id, count in sent.items():
        its = sorted((call for call in calls if call.queue_id == queue_id), key=lambda call: call.began_ms)
        first: dict[int, Call] = {}
        for before, call in itertools.pairwise(its):
            assert call.began_ms >= before.ended_ms - 2, f"{call} beside {before}"
        for call in its:
            assert call.number <= len(first), f"{call} before {len(first)}"
            again = first.setdefault(call.number, call)
            if again is not call:
                assert again.member == JAVA, f"{call} after {again}"
                assert again.ended_ms > killed_ms - SURELY_COMMITTED_MS, f"{call} after {again}"
        assert len(first) == count


async def live(cluster: OurBroker | ApacheRocketMQ, folder: Path, topic: str, group: str) -> None:
    shop, line = Shop(cluster, topic, group), Line()
    java = await asyncio.to_thread(JavaClient, VERSION, folder, cluster.namesrv)
    try:
        await shop.open()
        first = await shop.join(line.listener("first"), is_orderly=True)
        await eventually(lambda: shop.queues(first) == ALL_QUEUES)
        sender = Sender(shop, sorted(queue for queue in first.queues if queue.topic == topic))
        second = await shop.join(line.listener("second"), is_orderly=True)
        await eventually(lambda: len(shop.queues(first)) == len(shop.queues(second)) == 2)
        work_ms = int(WORK_S * 1000)
        await asyncio.to_thread(java.consumer, JAVA, group, topic, orderly=True, sleep_ms=work_ms, ends=True)

        def shares() -> list[int]:
            return sorted([len(shop.queues(first)), len(shop.queues(second)), len(java.queues(JAVA, topic))])

        async def are_shared() -> bool:
            return await asyncio.to_thread(shares) == [1, 1, 2]

        await eventually(are_shared)
        await shop.leave(first)
        await eventually(lambda: len(shop.queues(second)) == 2)
        await eventually(lambda: len({call.queue_id for call in java_calls(java)[-20:]}) == 2)
        killed_ms = time.time() * 1000
        await asyncio.to_thread(java.kill)
        third = await shop.join(line.listener("third"), is_orderly=True)
        await eventually(
            lambda: len(shop.queues(second)) == len(shop.queues(third)) == 2,
            LOCKS_EXPIRE_WITHIN_S + WITHIN_S,
        )
        await sender.stop()

        def consumed() -> int:
            return len({(call.queue_id, call.number) for call in [*line.calls, *java_calls(java)]})

        await eventually(lambda: consumed() == sum(sender.sent.values()))
        check([*line.calls, *java_calls(java)], sender.sent, killed_ms)
        assert {call.member for call in line.calls} == {"first", "second", "third"}
    finally:
        await asyncio.to_thread(java.kill)
        await shop.close()


async def test_order_is_kept_among_java_and_python_members_that_join_leave_and_are_killed(
    ours_rocketmq: OurBroker, apache_rocketmq: ApacheRocketMQ, tmp_path: Path, fresh: Callable[[str], str]
) -> None:
    require_driver(VERSION)
    topic, group = fresh("shop-line"), fresh("shop-line-group")
    async with asyncio.TaskGroup() as both:
        for cluster in (ours_rocketmq, apache_rocketmq):
            both.create_task(live(cluster, tmp_path / cluster.name, topic, group))
