"""A deploy: members start at once, and every queue is consumed (how soon: `python -m bench starts`)."""

from __future__ import annotations

import asyncio

import pytest

from tests.journeys.shop import ALL_QUEUES, QUEUE_COUNT, WARM_UP, Shop, into
from tests.support.java_client import JavaClient
from tests.support.our_broker import OurBroker
from tests.support.waiting import eventually

pytestmark = [pytest.mark.journey]

JAVA_STARTS_WITHIN_S = 150.0
MEMBERS = 8


async def all_queues_consumed(shop: Shop, bodies: list[str]) -> None:
    sent = [f"order {number}" for number in range(4 * QUEUE_COUNT)]
    await shop.send(*sent)
    await eventually(lambda: set(bodies) == set(sent))


async def test_members_of_ours_that_start_at_once_consume_every_queue(shop: Shop) -> None:
    bodies: list[str] = []
    members = await asyncio.gather(*(shop.join(into(bodies)) for _ in range(MEMBERS)))
    await all_queues_consumed(shop, bodies)
    # Members that started first give up what the later ones took.
    await eventually(lambda: sorted(queue for member in members for queue in shop.queues(member)) == sorted(ALL_QUEUES))


@pytest.mark.java
async def test_members_of_java_and_ours_that_start_at_once_consume_every_queue_of_our_broker(
    ours_rocketmq: OurBroker, java_process_5_4_0: JavaClient
) -> None:
    java = java_process_5_4_0.on(ours_rocketmq.namesrv)
    shop = Shop(ours_rocketmq, "shop-deploy", "shop-deploy-billing")
    await shop.open()
    names = [f"deploy-{number}" for number in range(MEMBERS // 2)]
    numbers = [
        java.post("consumer", name=name, group=shop.group, topic=shop.topic, namesrv=ours_rocketmq.namesrv)
        for name in names
    ]
    bodies: list[str] = []
    await asyncio.gather(*(shop.join(into(bodies)) for _ in range(MEMBERS // 2)))
    for number in numbers:
        await asyncio.to_thread(java.answer, number, JAVA_STARTS_WITHIN_S)
    sent = 4 * QUEUE_COUNT
    await shop.send(*[f"order {number}" for number in range(sent)])

    def consumed() -> int:
        return len({*bodies, *(event["body"] for event in java.consumed(*names))} - {WARM_UP})

    await eventually(lambda: consumed() == sent)
    for name in names:
        await asyncio.to_thread(java.stop, name)
    await shop.close()
