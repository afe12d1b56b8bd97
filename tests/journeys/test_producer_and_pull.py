"""Our producer and pull consumers, with Apache's Java client on the other side, on our broker and on Apache's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from remoting.client.admin import Admin
from remoting.client.errors import NoReply, NotConnected
from remoting.client.instance import ClientInstance
from remoting.client.lite_pull_consumer import LitePullConfig, LitePullConsumer
from remoting.client.outgoing import Message
from remoting.client.producer import Producer
from remoting.client.pull_consumer import PullConsumer
from remoting.client.received_message import ReceivedMessage
from remoting.client.trace import TraceDispatcher, TraceLimits
from remoting.client.transactions import State, Transactions
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.names import TRACE_TOPIC, retry_topic
from tests.journeys.conftest import Cluster
from tests.support.java import require_apache
from tests.support.java_client import JavaClient
from tests.support.mqadmin_tool import MqAdminTool
from tests.support.patience import answered, patiently, routed
from tests.support.waiting import eventually

pytestmark = [pytest.mark.journey, pytest.mark.java]

SEND_TIMEOUT_MS = 60_000
# A broker asks about a half 6 s after it was stored, or at its next round, 5 s later.
CHECKED_WITHIN_S = 150.0
# One that is committed so soon is not asked about: Apache's broker notes an end up to 3 s later.
UNASKED_S = 2.0
Fresh = Callable[[str], str]


@pytest.fixture
def java(java_process_5_4_0: JavaClient, cluster: Cluster) -> JavaClient:
    return java_process_5_4_0.on(cluster.namesrv)


@pytest_asyncio.fixture
async def instance(cluster: Cluster) -> AsyncIterator[ClientInstance]:
    instance = ClientInstance(cluster.namesrv)
    instance.start()
    yield instance
    await instance.close()


@pytest_asyncio.fixture
async def producer(instance: ClientInstance, fresh: Fresh) -> AsyncIterator[Producer]:
    producer = Producer((), fresh("senders"), instance=instance, timeout_ms=SEND_TIMEOUT_MS)
    await producer.start()
    yield producer
    await producer.close()


async def made(instance: ClientInstance, cluster: Cluster, topic: str, group: str | None = None) -> str:
    """Makes a topic of two queues, and a group with its retry topic, which a first member else finds late."""
    admin = Admin(instance.connections, timeout_ms=60_000)
    await admin.topics.create(cluster.broker, TopicConfig(topic_name=topic, read_queue_nums=2, write_queue_nums=2))
    if group is not None:
        await admin.groups.create(cluster.broker, SubscriptionGroupConfig(group_name=group))
        retries = TopicConfig(topic_name=retry_topic(group), read_queue_nums=1, write_queue_nums=1)
        await admin.topics.create(cluster.broker, retries)
    await eventually(lambda: routed(instance, topic))
    return topic


async def test_a_transaction_whose_end_was_lost_is_checked_and_delivered_once_to_a_java_consumer(
    cluster: Cluster,
    java: JavaClient,
    instance: ClientInstance,
    producer: Producer,
    fresh: Fresh,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group, consumer = fresh("group"), fresh("consumer")
    topic = await made(instance, cluster, fresh("orders"), group)
    asked: list[str] = []

    def check(message: ReceivedMessage) -> State:
        asked.append(message.text)
        return State.ROLLBACK if message.text == "undone" else State.COMMIT

    async def lost(*_: object) -> None:
        raise NotConnected(cluster.broker, "the answer is lost")

    transactions = Transactions(producer, check)
    monkeypatch.setattr(producer, "tell_broker", lost)
    kept = await transactions.send(topic, b"kept", lambda _: State.COMMIT, keys="k")
    await transactions.send(topic, b"undone", lambda _: State.ROLLBACK)
    monkeypatch.undo()
    began_s = time.monotonic()
    at_once = await transactions.send(topic, b"at once", lambda _: State.COMMIT)
    took_s = time.monotonic() - began_s
    await asyncio.to_thread(java.consumer, consumer, group, topic)
    got = await asyncio.to_thread(java.wait_consumed, 2, consumer, within_s=CHECKED_WITHIN_S)
    assert {(each["body"], each["msg_id"]) for each in got} == {
        ("kept", kept.half.message_id),
        ("at once", at_once.half.message_id),
    }
    await eventually(lambda: {"kept", "undone"} <= set(asked), within_s=CHECKED_WITHIN_S)
    assert "at once" not in asked or took_s > UNASKED_S
    await asyncio.to_thread(java.stop, consumer)


async def test_a_java_consumer_replies_to_our_request_and_nobody_to_another(
    cluster: Cluster, java: JavaClient, instance: ClientInstance, producer: Producer, fresh: Fresh
) -> None:
    group, consumer, answerer = fresh("group"), fresh("consumer"), fresh("answerer")
    topic = await made(instance, cluster, fresh("prices"), group)
    await asyncio.to_thread(java.producer, answerer)
    await asyncio.to_thread(java.consumer, consumer, group, topic, reply_with=answerer, reply="42")
    reply = await producer.request(topic, b"how much?", timeout_ms=120_000)
    assert (reply.body, reply.properties["MSG_TYPE"]) == (b"42", "reply")
    with pytest.raises(NoReply):
        await producer.request(await made(instance, cluster, fresh("silence")), b"?", timeout_ms=10_000)
    await asyncio.to_thread(java.stop, consumer)
    await asyncio.to_thread(java.stop, answerer)


async def test_we_reply_to_a_java_request(
    cluster: Cluster, java: JavaClient, instance: ClientInstance, producer: Producer, fresh: Fresh
) -> None:
    topic, asker = await made(instance, cluster, fresh("prices")), fresh("asker")
    await asyncio.to_thread(java.producer, asker)
    config = LitePullConfig(consume_from="first", wait_ms=1000)
    async with LitePullConsumer(cluster.namesrv, fresh("answerers"), config) as consumer:
        await consumer.assign(await answered(consumer.queues, topic))
        asking = asyncio.create_task(
            asyncio.to_thread(java.send, asker, topic, mode="request", body="how much?", timeout_ms=30_000)
        )
        (request,) = await eventually(lambda: consumer.poll(1))
        await producer.reply(request.properties, b"43")
        (reply,) = await asking
    assert reply["body"] == "43"
    await asyncio.to_thread(java.stop, asker)


async def test_apaches_tool_reads_the_trace_of_what_we_sent(
    cluster: Cluster,
    instance: ClientInstance,
    fresh: Fresh,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    require_apache()
    topic = await made(instance, cluster, fresh("orders"))
    trace = TraceDispatcher(instance, limits=TraceLimits(send_timeout_ms=60_000, close_timeout_s=60))
    producer = Producer((), fresh("senders"), instance=instance, timeout_ms=SEND_TIMEOUT_MS, trace=trace.record)
    await trace.start()
    await producer.start()
    await answered(producer.publish_queues, TRACE_TOPIC)
    sent = await producer.send(topic, b"traced", tags="paid", keys="order-17")
    batch = await producer.send_batch(topic, [Message(b"1"), Message(b"2")])
    await producer.close()
    await trace.close()
    assert trace.dropped_count == 0

    with MqAdminTool(tmp_path_factory.mktemp("tool")) as tool:

        async def shown(message_id: str) -> list[str]:
            said = await asyncio.to_thread(tool.run, "queryMsgTraceById", "-n", cluster.namesrv, "-i", message_id)
            return [line for line in said.splitlines() if line.startswith("Pub")]

        for message_id in (sent.message_id, batch[1].message_id):
            (line,) = await eventually(lambda of=message_id: shown(of))
            assert line.split()[1] == producer.group
            assert "success" in line


async def test_a_lite_consumer_shares_with_java_and_goes_on_where_it_committed(
    cluster: Cluster, java: JavaClient, instance: ClientInstance, producer: Producer, fresh: Fresh
) -> None:
    group, other = fresh("readers"), fresh("lite")
    topic = await made(instance, cluster, fresh("orders"), group)
    config = LitePullConfig(consume_from="first", wait_ms=1000, auto_commit=False)
    async with LitePullConsumer(cluster.namesrv, group, config) as consumer:
        consumer.subscribe(topic, "paid")
        await eventually(lambda: len(consumer.assignment) == 2)
        await asyncio.to_thread(java.lite_pull_consumer, other, group, {"topic": topic, "expression": "paid"})
        await eventually(lambda: len(consumer.assignment) == 1)
        await asyncio.to_thread(java.stop, other)
        await eventually(lambda: len(consumer.assignment) == 2)
        for number in range(4):
            await producer.send(topic, b"%d" % number, tags="paid")
            await producer.send(topic, b"not wanted", tags="other")
        bodies: list[bytes] = []
        while len(bodies) < 4:
            bodies += [message.body for message in await consumer.poll(5)]
        assert sorted(bodies) == [b"0", b"1", b"2", b"3"]

        async def all_committed() -> bool:
            await patiently(consumer.commit)  # what was filtered out, too, as soon as it was pulled
            offsets = [await patiently(consumer.committed, queue) or 0 for queue in consumer.assignment]
            return sum(offsets) == 8

        await eventually(all_committed)
    async with LitePullConsumer(cluster.namesrv, group, config) as again:
        again.subscribe(topic, "paid")
        await eventually(lambda: len(again.assignment) == 2)
        assert await again.poll(2) == []
        for queue in again.assignment:
            await patiently(again.seek_to_begin, queue)
        assert await eventually(lambda: again.poll(1))


async def test_the_classic_consumer_reads_what_java_sent_and_keeps_its_offsets(
    cluster: Cluster, java: JavaClient, instance: ClientInstance, fresh: Fresh
) -> None:
    topic, sender = await made(instance, cluster, fresh("orders")), fresh("sender")
    await asyncio.to_thread(java.producer, sender)
    await asyncio.to_thread(java.send, sender, topic, count=5, queue=1, size=10_000)
    async with PullConsumer(cluster.namesrv, fresh("readers")) as consumer:
        _, queue = await answered(consumer.queues, topic)
        await eventually(lambda: _reaches(consumer, queue, 5))
        result = await consumer.pull(queue, 1, count=2, wait_ms=1000)
        assert [message.body[:6] for message in result.messages] == [b"body-1", b"body-2"]
        assert len(result.messages[0].body) == 10_000  # it travelled compressed
        await patiently(consumer.commit, queue, result.next_offset)
        assert await eventually(lambda: patiently(consumer.committed, queue)) == 3
    await asyncio.to_thread(java.stop, sender)


async def test_pull_consumers_in_a_namespace_get_what_an_sql_expression_lets_through(
    cluster: Cluster, instance: ClientInstance, producer: Producer, fresh: Fresh
) -> None:
    name, group = fresh("orders"), fresh("readers")
    topic = await made(instance, cluster, f"prod%{name}", f"prod%{group}")
    for cents in ("50", "150"):
        await producer.send(topic, cents.encode(), properties={"cents": cents}, order_key="one queue")
    async with PullConsumer(cluster.namesrv, group, namespace="prod") as classic:
        queues = await answered(classic.queues, name)

        async def are_there() -> bool:
            return sum([await patiently(classic.max_offset, queue) for queue in queues]) == 2

        await eventually(are_there, what="both messages in their queue")
        found = [body for queue in queues for body in await _all_of(classic, queue, "cents > 100")]
        assert found == [b"150"]
    config = LitePullConfig(consume_from="first", wait_ms=1000, namespace="prod")
    async with LitePullConsumer(cluster.namesrv, group, config) as lite:
        lite.subscribe(name, sql="cents > 100")
        (message,) = await eventually(lambda: lite.poll(5))
        assert (message.topic, message.body) == (name, b"150")


async def _reaches(consumer: PullConsumer, queue: MessageQueue, offset: int) -> bool:
    return await patiently(consumer.max_offset, queue) == offset


async def _all_of(consumer: PullConsumer, queue: MessageQueue, sql: str) -> list[bytes]:
    """The bodies up to the queue's end: one pull may end before it, where a broker has looked at enough."""
    found: list[bytes] = []
    offset = 0
    while offset < await patiently(consumer.max_offset, queue):
        result = await patiently(consumer.pull, queue, offset, sql=sql, wait_ms=1000)
        found += [message.body for message in result.messages]
        offset = result.next_offset
    return found


async def test_a_timer_message_is_recalled_before_its_time(
    cluster: Cluster, instance: ClientInstance, producer: Producer, fresh: Fresh
) -> None:
    topic = await made(instance, cluster, fresh("reminders"))
    result = await producer.send(topic, b"x", delay_s=3600)
    assert result.recall_handle is not None
    assert await producer.recall(topic, result.recall_handle) == result.message_id
