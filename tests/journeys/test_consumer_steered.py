"""What operators and expressions do to our members, on our broker and on Apache's alike."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from consumer.engine.broker_check import SubscriptionRefused
from consumer.engine.message import Message
from consumer.engine.outcomes import Later
from consumer.engine.push_consumer import PushConsumer
from tests.journeys.shop import ALL_QUEUES, WARM_UP, Shop, into
from tests.support.java import require_apache
from tests.support.mqadmin_tool import MqAdminTool
from tests.support.waiting import eventually

pytestmark = [pytest.mark.journey]


async def test_an_sql_expression_lets_only_matching_messages_through(shop: Shop) -> None:
    bodies: list[str] = []
    member = await shop.join(into(bodies), sql="amount > 100 AND currency IN ('EUR', 'USD')")
    await eventually(lambda: shop.queues(member))
    for number, (amount, currency) in enumerate([(50, "EUR"), (150, "EUR"), (150, "GBP"), (101, "USD"), (900, "CNY")]):
        await shop.send(f"{number}", properties={"amount": f"{amount}", "currency": currency})
    await eventually(lambda: len(bodies) == 2)
    assert sorted(bodies) == ["1", "3"]
    # What was filtered out, the warm-up included, counts as consumed.
    await eventually(lambda: sum(queue.commit_offset for queue in member.running_info().queues.values()) == 6)
    await shop.leave(member)
    assert await shop.committed() == 5


async def test_a_consumer_whose_expression_no_broker_understands_does_not_start(shop: Shop) -> None:
    with pytest.raises(
        SubscriptionRefused, match=f"group '{shop.group}' cannot consume topic '{shop.topic}'"
    ) as raised:
        await shop.join(into([]), sql="amount > > 100")
    assert "amount > > 100" in str(raised.value)


@pytest.fixture(scope="module")
def mqadmin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MqAdminTool]:
    require_apache()
    with MqAdminTool(tmp_path_factory.mktemp("mqadmin")) as tool:
        yield tool


async def ask(tool: MqAdminTool, shop: Shop, command: str, *arguments: str) -> str:
    """As `run`, for what changes nothing."""
    return await asyncio.to_thread(tool.run_until_answered, command, *arguments, "-n", shop.cluster.namesrv)


async def run(tool: MqAdminTool, shop: Shop, command: str, *arguments: str) -> str:
    return await asyncio.to_thread(tool.run, command, *arguments, "-n", shop.cluster.namesrv)


async def consuming(shop: Shop, bodies: list[str]) -> PushConsumer:
    member = await shop.join(into(bodies))
    await eventually(lambda: shop.queues(member) == ALL_QUEUES)
    await shop.send(*[f"order {number}" for number in range(8)])
    await eventually(lambda: len(bodies) == 8)
    return member


@pytest.mark.java
async def test_apaches_mqadmin_tells_what_a_member_does(shop: Shop, mqadmin: MqAdminTool) -> None:
    member = await consuming(shop, [])
    connection = await ask(mqadmin, shop, "consumerConnection", "-g", shop.group)
    assert member.client_id in connection
    assert f"{shop.topic}" in connection
    assert "MessageModel: CLUSTERING" in connection
    status = await ask(mqadmin, shop, "consumerStatus", "-g", shop.group, "-i", member.client_id, "-s", "true")
    lines = [" ".join(line.split()) for line in status.splitlines()]
    for said in (f"consumerGroup : {shop.group}", "PROP_CONSUMEORDERLY : false", "maxReconsumeTimes : 16"):
        assert said in lines, status
    of_queues = [line.split() for line in lines if line.startswith(f"{shop.topic} broker-a ")]
    assert sorted(int(line[2]) for line in of_queues[:4]) == sorted(ALL_QUEUES)
    assert "MainThread  TID:" in status
    assert "task pull " in status
    progress = await ask(mqadmin, shop, "consumerProgress", "-g", shop.group, "-s", "true")
    assert progress.count(shop.topic) >= 4

    async def has_told_all() -> bool:
        told = await shop.admin.clients.progress(shop.cluster.broker, shop.group, shop.topic)
        assert list(told) == [member.client_id]
        return sum(told[member.client_id].values()) == 9  # the warm-up, too

    await eventually(has_told_all)


@pytest.mark.java
async def test_apaches_mqadmin_resets_the_offsets_of_a_running_member(shop: Shop, mqadmin: MqAdminTool) -> None:
    bodies: list[str] = []
    await consuming(shop, bodies)
    said = await run(mqadmin, shop, "resetOffsetByTime", "-g", shop.group, "-t", shop.topic, "-s", "0")
    assert said.count("broker-a") == 4, said
    await eventually(lambda: len(bodies) == 16)
    assert sorted(bodies[8:]) == sorted(bodies[:8])


@pytest.mark.java
async def test_apaches_mqadmin_has_a_member_consume_one_message_directly(shop: Shop, mqadmin: MqAdminTool) -> None:
    seen: list[str] = []

    async def listen(message: Message) -> None:
        if message.text != WARM_UP:
            seen.append(message.text)
        if seen[1:]:
            raise Later("not twice")

    member = await shop.join(listen)
    await eventually(lambda: shop.queues(member) == ALL_QUEUES)
    sent = await shop.producer.send(shop.topic, b"order")
    await eventually(lambda: seen == ["order"])
    command = ("queryMsgById", "-i", sent.offset_message_id, "-g", shop.group, "-d", member.client_id, "-t", shop.topic)
    said = await run(mqadmin, shop, *command)
    assert seen == ["order", "order"]
    assert "consumeResult=CR_LATER" in said
    assert "remark=Later: not twice" in said


@pytest.mark.java
async def test_apaches_mqadmin_finds_the_trace_of_what_a_member_consumed(shop: Shop, mqadmin: MqAdminTool) -> None:
    bodies: list[str] = []
    member = await shop.join(into(bodies), trace=True)
    await eventually(lambda: shop.queues(member) == ALL_QUEUES)
    sent = await shop.producer.send(shop.topic, b"order")
    await eventually(lambda: bodies == ["order"])
    await shop.leave(member)  # sends the traces that wait

    async def told() -> bool:
        said = await run(mqadmin, shop, "queryMsgTraceById", "-i", sent.message_id)
        return any(line.split()[:2] == ["Sub", shop.group] and "success" in line for line in said.splitlines())

    await eventually(told, what="the traces in the key index")
