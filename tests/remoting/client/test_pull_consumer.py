from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from remoting.client.errors import BrokerRefused, ClientError, RouteNotFound
from remoting.client.pull_answer import PullStatus
from remoting.client.pull_consumer import PullConsumer
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import response
from remoting.wire.errors import MessageError
from tests.support.memory_broker import MemoryBroker
from tests.support.waiting import eventually


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[MemoryBroker]:
    async with MemoryBroker() as broker:
        yield broker


@pytest_asyncio.fixture
async def consumer(broker: MemoryBroker) -> AsyncIterator[PullConsumer]:
    async with PullConsumer(broker.namesrv, "reports") as consumer:
        yield consumer


async def test_a_queue_is_read_from_any_offset_and_its_ends_are_known(
    broker: MemoryBroker, consumer: PullConsumer
) -> None:
    broker.create_topic("orders", 1)
    broker.put("orders", *(b"%d" % number for number in range(5)))
    (queue,) = await consumer.queues("orders")
    result = await consumer.pull(queue, 1, count=2)
    assert [message.body for message in result.messages] == [b"1", b"2"]
    assert (result.status, result.next_offset, result.min_offset, result.max_offset) == (PullStatus.FOUND, 3, 0, 5)
    assert (result.messages[0].queue, result.messages[0].queue_offset) == (queue, 1)
    assert (await consumer.min_offset(queue), await consumer.max_offset(queue)) == (0, 5)
    assert await consumer.offset_at(queue, result.messages[0].stored_ms - 60_000) == 0


async def test_a_pull_says_when_there_is_nothing_or_nothing_that_matches(
    broker: MemoryBroker, consumer: PullConsumer
) -> None:
    (queue,) = broker.create_topic("orders", 1)
    assert (await consumer.pull(queue, 0)).status is PullStatus.NO_NEW_MESSAGE
    assert (await consumer.pull(queue, 0, wait_ms=10)).status is PullStatus.NO_NEW_MESSAGE
    broker.put("orders", b"x", tags="BB")
    other = await consumer.pull(queue, 0, tags="other")
    assert (other.status, other.next_offset) == (PullStatus.NO_MATCHED_MESSAGE, 1)
    colliding = await consumer.pull(queue, 0, tags="Aa")
    assert (colliding.status, colliding.next_offset, colliding.messages) == (PullStatus.FOUND, 1, [])
    illegal = await consumer.pull(queue, 7)
    assert (illegal.status, illegal.next_offset) == (PullStatus.OFFSET_ILLEGAL, 1)


async def test_in_a_namespace_only_brokers_see_the_whole_names(broker: MemoryBroker) -> None:
    broker.create_topic("prod%orders", 1)
    broker.put("prod%orders", b"x")
    async with PullConsumer(broker.namesrv, "reports", namespace="prod") as consumer:
        (queue,) = await consumer.queues("orders")
        (message,) = (await consumer.pull(queue, 0)).messages
        assert (queue.topic, message.topic, message.queue) == ("orders", "orders", queue)
        await consumer.commit(queue, 1)
        assert await consumer.committed(queue) == await consumer.max_offset(queue) == 1
    assert [(group, of.topic) for group, of in broker.offsets] == [("prod%reports", "prod%orders")]


async def test_a_pull_carries_an_sql_expression(broker: MemoryBroker, consumer: PullConsumer) -> None:
    (queue,) = broker.create_topic("orders", 1)
    await consumer.pull(queue, 0, sql="cents > 100")
    with pytest.raises(MessageError, match="exclude each other: in SQL92 a tag is the property TAGS"):
        await consumer.pull(queue, 0, tags="paid", sql="cents > 100")
    (fields,) = [fields for code, fields in broker.seen if code == RequestCode.PULL_MESSAGE]
    assert (fields["subscription"], fields["expressionType"]) == ("cents > 100", "SQL92")


async def test_offsets_are_kept_as_the_caller_says(broker: MemoryBroker, consumer: PullConsumer) -> None:
    (queue,) = broker.create_topic("orders", 1)
    assert await consumer.committed(queue) is None
    await consumer.commit(queue, 7)
    assert await consumer.committed(queue) == 7
    await consumer.commit(queue, 3)
    assert await consumer.committed(queue) == 3


async def test_what_cannot_be_is_refused_with_its_reason(broker: MemoryBroker, consumer: PullConsumer) -> None:
    (queue,) = broker.create_topic("orders", 1)
    with pytest.raises(RouteNotFound):
        await consumer.queues("missing")
    with pytest.raises(ValueError, match="1 to 32"):
        await consumer.pull(queue, 0, count=33)
    with pytest.raises(ValueError, match="0 to 20000"):
        await consumer.pull(queue, 0, wait_ms=-1)
    with pytest.raises(MessageError, match="names no tag"):
        await consumer.pull(queue, 0, tags="||")
    broker.faults[RequestCode.PULL_MESSAGE] = lambda request: response(request, ResponseCode.NO_PERMISSION, "no")
    with pytest.raises(BrokerRefused, match="check the permissions"):
        await consumer.pull(queue, 0)
    with pytest.raises(MessageError):
        PullConsumer(broker.namesrv, "a b")


@pytest.mark.slow
async def test_a_consumer_works_between_start_and_close_only(broker: MemoryBroker) -> None:
    (queue,) = broker.create_topic("orders", 1)
    consumer = PullConsumer(broker.namesrv, "reports")
    with pytest.raises(ClientError, match="is not running"):
        await consumer.pull(queue, 0)
    async with consumer:
        await consumer.pull(queue, 0)
        await eventually(lambda: broker.members["reports"])  # the first heartbeat comes after 1 s
    assert broker.members["reports"] == {}
