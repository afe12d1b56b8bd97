"""Following our own broker, the real one, while members of a group come and go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from channels.db import database_sync_to_async

from consumer.engine.config import ConsumerConfig
from consumer.engine.listening import Listener
from consumer.engine.push_consumer import PushConsumer
from consumer.engine.start_position import start_rule
from mqadmin.clusters.models import Cluster, Group, Member, QueueOffset, Topic
from mqadmin.rebalances.models import RebalanceEvent
from remoting.client.producer import Producer
from tests.support.follower import follower_thread
from tests.support.our_broker import OurBroker
from tests.support.waiting import eventually

pytestmark = [pytest.mark.journey, pytest.mark.django_db(transaction=True)]

QUEUES = {0, 1, 2, 3}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OurBroker]:
    with OurBroker(tmp_path / "store") as broker:
        yield broker


@pytest.fixture
def followed(broker: OurBroker) -> Iterator[Cluster]:
    cluster = Cluster.objects.create(name="local", namesrv=broker.namesrv)
    with follower_thread(stopped_within_s=120):
        yield cluster


@pytest.fixture
def other(tmp_path: Path) -> Iterator[OurBroker]:
    with OurBroker(tmp_path / "other", arguments=("--name=broker-b",)) as broker:
        yield broker


@pytest.fixture
def followed_both(broker: OurBroker, other: OurBroker) -> Iterator[Cluster]:
    cluster = Cluster.objects.create(name="both", namesrv=f"{broker.namesrv};{other.namesrv}")
    with follower_thread(stopped_within_s=120):
        yield cluster


@pytest.fixture
async def producer(broker: OurBroker) -> AsyncIterator[Producer]:
    producer = Producer(broker.namesrv, "shop", timeout_ms=60_000)
    await producer.start()
    yield producer
    await producer.close()


def member(broker: OurBroker) -> PushConsumer:
    async def consume(_: Any) -> None:
        return None

    config = ConsumerConfig(broker.namesrv, "billing", start=start_rule("first"))
    return PushConsumer(config, {"orders": Listener("orders", consume, "*", is_async=True)})


async def soon(fact: Callable[[], object], what: str) -> None:
    await eventually(database_sync_to_async(fact), what=what)


def owned(client_id: str) -> set[int]:
    rows = QueueOffset.objects.filter(group__name="billing", topic_name="orders", owner=client_id)
    return set(rows.values_list("queue_id", flat=True))


async def test_rows_follow_messages_members_and_their_queues(
    broker: OurBroker, followed: Cluster, producer: Producer
) -> None:
    for number in range(20):
        await producer.send("orders", f"order {number}".encode())
    await soon(lambda: Topic.objects.filter(name="orders", max_total=20).exists(), "twenty messages")

    first, second = member(broker), member(broker)
    await first.start()
    await soon(lambda: owned(first.client_id) == QUEUES, "one member with all queues")
    await soon(lambda: Group.objects.get(name="billing").lag == 0, "no lag")
    await second.start()
    await soon(lambda: len(owned(first.client_id)) == len(owned(second.client_id)) == 2, "two queues each")
    await second.stop()
    await soon(lambda: owned(first.client_id) == QUEUES, "all queues back")
    await soon(lambda: Member.objects.get(client_id=second.client_id).left_at, "the second's departure")

    await first.stop()
    await producer.send("orders", b"nobody reads this")
    await soon(lambda: Group.objects.filter(name="billing", lag=1, verdict="stopped").exists(), "a stopped group")
    kinds = await database_sync_to_async(
        lambda: list(RebalanceEvent.objects.order_by("at", "id").values_list("kind", "client_id"))
    )()
    told = [pair for pair in kinds if pair[0] != "queues_moved"]
    assert told == [
        ("joined", first.client_id),
        ("joined", second.client_id),
        ("left", second.client_id),
        ("left", first.client_id),
    ]
    assert sum(kind == "queues_moved" for kind, _ in kinds) >= 3


async def test_restarted_broker_is_followed_on(broker: OurBroker, followed: Cluster, producer: Producer) -> None:
    await producer.send("orders", b"before")
    await soon(lambda: Topic.objects.filter(name="orders", max_total=1).exists(), "the first message")
    broker.kill()
    await soon(lambda: Cluster.objects.get().state == "unreachable", "an unreachable cluster")
    broker.start()
    await soon(lambda: Cluster.objects.get().state == "reachable", "a reachable cluster")
    await eventually(lambda: producer.send("orders", b"after"))
    await soon(lambda: Topic.objects.filter(name="orders", max_total__gte=2).exists(), "the second message")


async def test_two_brokers_are_followed_as_one_cluster_and_one_goes_on_without_the_other(
    broker: OurBroker, other: OurBroker, followed_both: Cluster, producer: Producer
) -> None:
    # One member of the group on each: each name server lists its own broker alone.
    members = [member(broker), member(other)]
    to_other = Producer(other.namesrv, "shop", timeout_ms=60_000)
    await to_other.start()
    await producer.send("orders", b"here")
    await to_other.send("orders", b"there")
    await soon(lambda: Topic.objects.filter(name="orders", max_total=2).exists(), "a message on each broker")
    count = await database_sync_to_async(lambda: Topic.objects.get(name="orders").read_queue_count)()
    assert count == 2 * len(QUEUES)
    for one in members:
        await one.start()
    await soon(lambda: Group.objects.filter(name="billing", member_count=2, lag=0).exists(), "two members")
    other.kill()
    await soon(lambda: Cluster.objects.filter(state="partial").exists(), "a broker that is away")
    await producer.send("orders", b"here again")
    await soon(lambda: Topic.objects.filter(name="orders", max_total=3).exists(), "the other's message")
    assert await database_sync_to_async(lambda: list(Cluster.objects.get().brokers_away))() == ["broker-b"]
    other.start()
    await soon(lambda: Cluster.objects.filter(state="reachable", brokers_away={}).exists(), "both brokers")
    for one in members:
        await one.stop()
    await to_other.close()
    await soon(lambda: Group.objects.filter(name="billing", member_count=0).exists(), "no members")
