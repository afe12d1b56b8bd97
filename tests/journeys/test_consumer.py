"""Our consumer against our broker and against Apache's: a journey must see the same on both."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from consumer.engine.config import ConsumerConfig
from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.push_consumer import PushConsumer
from consumer.engine.start_position import start_rule
from remoting.client.admin import Admin
from remoting.client.instance import ClientInstance
from remoting.client.producer import Producer
from tests.journeys.conftest import Cluster
from tests.journeys.refusals import Refusals
from tests.support.children import Child
from tests.support.java_client import JavaClient
from tests.support.our_broker import OurBroker
from tests.support.waiting import eventually

pytestmark = [pytest.mark.journey]

ROOT = Path(__file__).parents[2]
# A lost member's queues are consumed by the others as soon as they hear of it, not only at the next regular rebalance,
# after 20 s.
TAKEN_OVER_WITHIN_S = 15.0
# What a topic gets that is made by its first message.
QUEUE_COUNT = 4
ALL_QUEUES = set(range(QUEUE_COUNT))
WARM_UP = "warm-up"


@pytest.fixture(autouse=True)
def _a_refusal_is_under_way(request: pytest.FixtureRequest, refusals: Refusals) -> None:
    """test_consumer_late.py judges after its 40 s what begins here."""
    if "cluster" in request.fixturenames:
        refusals.begin(request.getfixturevalue("cluster"))


class Shop:
    """A topic and a group of one test on one cluster, with everything that a test does to them."""

    def __init__(self, cluster: Cluster, topic: str, group: str) -> None:
        self.cluster = cluster
        self.topic = topic
        self.group = group
        self.client = ClientInstance(cluster.namesrv)
        self.admin = Admin(self.client.connections)
        self.producer = Producer(cluster.namesrv, "shop", instance=self.client, timeout_ms=10_000)
        self._members: list[PushConsumer] = []

    async def open(self) -> None:
        """The first message makes the topic, with as many queues as a producer asks for."""
        self.client.start()
        await self.producer.start()
        await self.send(WARM_UP)

    async def close(self) -> None:
        for member in list(self._members):
            await self.leave(member)
        await self.producer.close()
        await self.client.close()

    async def join(
        self, call: Callable[[Message], Any], *, tags: str = "*", is_async: bool = True, **config: Any
    ) -> PushConsumer:
        settings = ConsumerConfig(self.cluster.namesrv, self.group, **{"start": start_rule("first"), **config})
        member = PushConsumer(settings, {self.topic: Listener(self.topic, call, tags, is_async=is_async)})
        await member.start()
        self._members.append(member)
        return member

    async def leave(self, member: PushConsumer) -> None:
        self._members.remove(member)
        await member.stop()

    async def send(self, *bodies: str, tags: str | None = None) -> None:
        for body in bodies:
            await self.producer.send(self.topic, body.encode(), tags=tags)

    def queues(self, member: PushConsumer) -> set[int]:
        return {queue.queue_id for queue in member.queues if queue.topic == self.topic}

    async def committed(self) -> int:
        """Sum over the topic's queues, the first message left out."""
        total = -1
        for queue_id in range(QUEUE_COUNT):
            total += await self.admin.offsets.committed(self.cluster.broker, self.group, self.topic, queue_id) or 0
        return total


@pytest.fixture
async def shop(cluster: Cluster, fresh: Callable[[str], str]) -> AsyncIterator[Shop]:
    opened = Shop(cluster, fresh("shop-orders"), fresh("shop-billing"))
    await opened.open()
    yield opened
    await opened.close()


def into(bodies: list[str]) -> Callable[[Message], Any]:
    async def listen(message: Message) -> None:
        if message.text != WARM_UP:
            bodies.append(message.text)

    return listen


async def test_members_share_the_queues_when_a_third_joins_and_when_one_leaves(shop: Shop) -> None:
    bodies: list[str] = []
    first = await shop.join(into(bodies))
    await eventually(lambda: shop.queues(first) == ALL_QUEUES, 15)
    second = await shop.join(into(bodies))
    await eventually(lambda: len(shop.queues(first)) == len(shop.queues(second)) == 2, 15)
    third = await shop.join(into(bodies))
    await eventually(lambda: sorted(len(shop.queues(one)) for one in (first, second, third)) == [1, 1, 2], 15)
    assert shop.queues(first) | shop.queues(second) | shop.queues(third) == ALL_QUEUES
    await shop.leave(second)
    await eventually(lambda: len(shop.queues(first)) == len(shop.queues(third)) == 2, TAKEN_OVER_WITHIN_S)
    sent = [f"order {number}" for number in range(40)]
    await shop.send(*sent)
    await eventually(lambda: len(bodies) >= 40, 15)
    assert Counter(bodies) == Counter(sent)


async def test_progress_is_taken_up_where_a_stopped_group_left_it(shop: Shop) -> None:
    bodies: list[str] = []
    member = await shop.join(into(bodies))
    await shop.send(*[f"early {number}" for number in range(20)])
    await eventually(lambda: len(bodies) == 20, 15)
    await shop.leave(member)
    assert await shop.committed() == 20
    await shop.send(*[f"late {number}" for number in range(20)])

    def listen(message: Message) -> None:
        bodies.append(message.text)

    await shop.join(listen, is_async=False)
    await eventually(lambda: len(bodies) >= 40, 15)
    assert len(set(bodies)) == len(bodies) == 40


async def test_messages_that_the_tags_filter_out_do_not_hold_up_progress(shop: Shop) -> None:
    bodies: list[str] = []
    await shop.send(*["no"] * 16, tags="created")
    await shop.send(*["yes"] * 8, tags="paid")
    await shop.send(*["no"] * 16, tags="created")
    member = await shop.join(into(bodies), tags="paid || refunded")
    await eventually(lambda: len(bodies) >= 8, 15)

    def progress() -> int:
        queues = member.running_info().queues
        return sum(info.commit_offset for queue, info in queues.items() if queue.topic == shop.topic)

    await eventually(lambda: progress() == 41, 5)
    await shop.leave(member)
    assert await shop.committed() == 40
    assert bodies == ["yes"] * 8


async def test_the_queues_of_a_killed_process_are_consumed_by_the_others_at_once(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The other member is `manage.py runconsumer` of the example shop, as a user would run it."""
    shop = Shop(cluster, "orders", "mailing")
    await shop.open()
    try:
        bodies: list[str] = []
        member = await shop.join(into(bodies))
        await eventually(lambda: shop.queues(member) == ALL_QUEUES, 15)
        bodies.clear()
        command = [sys.executable, "manage.py", "runconsumer", "mailing", "--namesrv", cluster.namesrv]
        other = Child(command, tmp_path / "other.log", cwd=ROOT, env={"MQADMIN_APPS": "examples.shop"})
        try:
            await eventually(lambda: len(shop.queues(member)) == 2, 30, "the other member's half")
            os.kill(other.pid, signal.SIGKILL)
            await shop.send(*[f"{number}" for number in range(16)])
            await eventually(lambda: len(bodies) >= 16, TAKEN_OVER_WITHIN_S)
        finally:
            other.kill()
    finally:
        await shop.close()


@pytest.mark.java
async def test_a_group_is_shared_with_a_java_member(java: JavaClient, shop: Shop, fresh: Callable[[str], str]) -> None:
    bodies: list[str] = []
    name = fresh("java-member")

    def java_bodies() -> list[str]:
        return [event["body"] for event in java.consumed(name) if event["body"] != WARM_UP]

    member = await shop.join(into(bodies))
    await eventually(lambda: shop.queues(member) == ALL_QUEUES, 15)
    java.consumer(name, shop.group, shop.topic)
    try:
        await eventually(lambda: len(shop.queues(member)) == 2, 30)
        await eventually(lambda: java.queues(name, shop.topic) | shop.queues(member) == ALL_QUEUES, 30)
        assert not java.queues(name, shop.topic) & shop.queues(member)
        await shop.send(*[f"order {number}" for number in range(40)])
        await eventually(lambda: len(bodies) + len(java_bodies()) >= 40, 30)
        assert len(bodies) == len(java_bodies()) == 20
    finally:
        java.stop(name)
    await eventually(lambda: shop.queues(member) == ALL_QUEUES, TAKEN_OVER_WITHIN_S)


@pytest.mark.java
async def test_a_java_tool_reads_what_our_member_says_of_itself(java: JavaClient, shop: Shop) -> None:
    bodies: list[str] = []
    member = await shop.join(into(bodies))
    await shop.send(*["x"] * 16)
    await eventually(lambda: len(bodies) == 16, 15)
    info = await asyncio.to_thread(java.admin, "running_info", group=shop.group, client_id=member.client_id)
    assert shop.topic in str(info)


async def test_a_group_goes_on_by_itself_after_its_broker_was_killed_and_started_again(tmp_path: Path) -> None:
    bodies: list[str] = []
    with OurBroker(tmp_path / "store") as broker:
        shop = Shop(broker, "orders", "billing")
        await shop.open()
        try:
            first, second = await shop.join(into(bodies)), await shop.join(into(bodies))
            await eventually(lambda: len(shop.queues(first)) == len(shop.queues(second)) == 2, 15)
            await shop.send(*[f"before {number}" for number in range(20)])
            await eventually(lambda: len(bodies) == 20, 15)
            broker.kill()
            await asyncio.to_thread(broker.start)
            await shop.send(*[f"after {number}" for number in range(20)])
            await eventually(lambda: len({body for body in bodies if body.startswith("after")}) == 20, 15)
            # The broker forgot its members; neither gave up what it had, nor took the other's for good.
            await eventually(lambda: len(shop.queues(first)) == len(shop.queues(second)) == 2, 15)
            assert not shop.queues(first) & shop.queues(second)
        finally:
            await shop.close()


async def test_runconsumer_ends_cleanly_on_ctrl_c(cluster: Cluster, tmp_path: Path) -> None:
    command = [sys.executable, "manage.py", "runconsumer", "billing", "--namesrv", cluster.namesrv]
    child = Child(command, tmp_path / "billing.log", cwd=ROOT, env={"MQADMIN_APPS": "examples.shop"})
    try:
        await eventually(lambda: "member" in child.output() or not child.is_running, 30)
        os.kill(child.pid, signal.SIGINT)
        await eventually(lambda: not child.is_running, 15)
    finally:
        child.kill()
    assert child.process.returncode == 0, child.output()
    assert child.output().rstrip().endswith("group billing stopped")
    assert "Traceback" not in child.output()
