"""Rules 2.14 against a broker in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from remoting.client.errors import ClientError
from remoting.client.lite_pull_consumer import LitePullConfig, LitePullConsumer
from remoting.client.lite_queue import CacheLimits
from remoting.client.queue_requests import QueueRequests
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from tests.support.memory_broker import MemoryBroker
from tests.support.waiting import cancelled_after, eventually

GROUP = "reports"
FIRST = LitePullConfig(consume_from="first", wait_ms=200)


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[MemoryBroker]:
    async with MemoryBroker() as broker:
        yield broker


@asynccontextmanager
async def consuming(broker: MemoryBroker, config: LitePullConfig = FIRST) -> AsyncIterator[LitePullConsumer]:
    async with LitePullConsumer(broker.namesrv, GROUP, config) as consumer:
        yield consumer


async def polled(consumer: LitePullConsumer, count: int) -> list[bytes]:
    bodies: list[bytes] = []
    async with asyncio.timeout(60):
        while len(bodies) < count:
            bodies += [message.body for message in await consumer.poll(1)]
    return bodies


def committed(broker: MemoryBroker, queue: MessageQueue) -> int | None:
    return broker.offsets.get((GROUP, queue))


async def test_subscribe_and_assign_exclude_each_other(broker: MemoryBroker) -> None:
    (queue,) = broker.create_topic("orders", 1)
    async with consuming(broker) as consumer:
        with pytest.raises(ClientError, match="reads nothing: subscribe to a topic, or assign"):
            await consumer.poll(0)
        consumer.subscribe("orders")
        with pytest.raises(ClientError, match=r"^Subscribe and assign are mutually exclusive\.$"):
            await consumer.assign([queue])
    async with consuming(broker) as consumer:
        await consumer.assign([queue])
        with pytest.raises(ClientError, match="mutually exclusive"):
            consumer.subscribe("orders")


async def test_members_that_subscribe_share_the_queues_and_get_all_messages_once(broker: MemoryBroker) -> None:
    broker.create_topic("orders", 4)
    async with consuming(broker) as one, consuming(broker) as other:
        one.subscribe("orders")
        other.subscribe("orders")
        await eventually(lambda: len(one.assignment) == len(other.assignment) == 2)
        assert not one.assignment & other.assignment
        broker.put("orders", *(b"%d" % number for number in range(20)))
        bodies = await polled(one, 10) + await polled(other, 10)
        assert sorted(bodies, key=int) == [b"%d" % number for number in range(20)]
        await other.close()
        await eventually(lambda: len(one.assignment) == 4)


async def test_only_messages_of_the_subscribed_tags_come_and_the_others_count_as_consumed(
    broker: MemoryBroker,
) -> None:
    (queue,) = broker.create_topic("orders", 1)
    broker.put("orders", b"1", tags="Aa")
    broker.put("orders", b"2", tags="BB")  # the same hash
    broker.put("orders", b"3", tags="other")
    async with consuming(broker) as consumer:
        consumer.subscribe("orders", "Aa")
        assert await polled(consumer, 1) == [b"1"]
        await consumer.commit()
    assert committed(broker, queue) == 3


async def test_assigned_queues_are_read_whoever_else_is_there(broker: MemoryBroker) -> None:
    first, second = broker.create_topic("orders", 2)
    broker.put("orders", b"1", queue_id=0)
    broker.put("orders", b"2", queue_id=1)
    async with consuming(broker) as one, consuming(broker) as other:
        await one.assign([first])
        await other.assign([first, second])
        assert await polled(one, 1) == [b"1"]
        assert sorted(await polled(other, 2)) == [b"1", b"2"]
        await other.assign([second])
        assert other.assignment == {second}


@pytest.mark.slow
async def test_what_was_polled_is_committed_by_the_next_poll_and_at_the_end(broker: MemoryBroker) -> None:
    (queue,) = broker.create_topic("orders", 1)
    broker.put("orders", b"1", b"2")
    config = LitePullConfig(consume_from="first", pull_count=1, auto_commit_interval_s=1.0, wait_ms=200)
    async with consuming(broker, config) as consumer:
        await consumer.assign([queue])
        assert await polled(consumer, 1) == [b"1"]
        assert committed(broker, queue) is None
        await eventually(lambda: consumer.poll(0.05))  # the second; a poll commits what was polled before
        await consumer.poll(1)
        await eventually(lambda: _polled_and_committed(consumer, broker, queue))
    assert committed(broker, queue) == 2
    async with consuming(broker) as consumer:
        await consumer.assign([queue])
        assert await consumer.poll(0.1) == []


async def _polled_and_committed(consumer: LitePullConsumer, broker: MemoryBroker, queue: MessageQueue) -> bool:
    await consumer.poll(0.05)
    return committed(broker, queue) is not None


async def test_without_auto_commit_only_a_commit_does(broker: MemoryBroker) -> None:
    first, second = broker.create_topic("orders", 2)
    broker.put("orders", b"1", b"2", queue_id=0)
    config = LitePullConfig(consume_from="first", auto_commit=False, wait_ms=200)
    async with consuming(broker, config) as consumer:
        await consumer.assign([first])
        await polled(consumer, 2)
        with pytest.raises(ClientError, match=r"queueId=1\] is not read by this consumer"):
            await consumer.commit({second: 0})
    assert committed(broker, first) is None
    async with consuming(broker, config) as consumer:
        await consumer.assign([first])
        await polled(consumer, 2)
        await consumer.commit()
        assert await consumer.committed(first) == 2
        await consumer.commit({first: 1})
    assert committed(broker, first) == 1


async def test_a_commit_that_a_broker_refuses_is_raised(broker: MemoryBroker) -> None:
    (queue,) = broker.create_topic("orders", 1)
    broker.put("orders", b"1")
    broker.faults[RequestCode.UPDATE_CONSUMER_OFFSET] = lambda request: response(request, ResponseCode.SYSTEM_ERROR)
    async with consuming(broker) as consumer:
        await consumer.assign([queue])
        await polled(consumer, 1)
        with pytest.raises(ClientError, match="refused UPDATE_CONSUMER_OFFSET"):
            await consumer.commit()
        broker.faults.clear()
    assert committed(broker, queue) == 1


async def test_seek_goes_on_anywhere_that_the_broker_has_and_nowhere_else(broker: MemoryBroker) -> None:
    (queue,) = broker.create_topic("orders", 1)
    broker.put("orders", *(b"%d" % number for number in range(5)))
    async with consuming(broker) as consumer:
        await consumer.assign([queue])
        assert len(await polled(consumer, 5)) == 5
        await consumer.seek(queue, 3)
        assert await polled(consumer, 2) == [b"3", b"4"]
        await consumer.seek_to_begin(queue)
        assert await polled(consumer, 5) == [b"0", b"1", b"2", b"3", b"4"]
        await consumer.seek_to_end(queue)
        broker.put("orders", b"new")
        assert await polled(consumer, 1) == [b"new"]
        for offset in (-1, 7):
            with pytest.raises(ClientError, match=f"offset {offset} is not there; the broker has 0 to 6"):
                await consumer.seek(queue, offset)
        with pytest.raises(ClientError, match="is not read by this consumer"):
            await consumer.seek(queue._replace(topic="other"), 0)


async def test_a_seek_ends_a_pull_that_the_broker_holds(broker: MemoryBroker) -> None:
    (queue,) = broker.create_topic("orders", 1)
    broker.put("orders", b"1")
    async with consuming(broker, LitePullConfig(consume_from="last", wait_ms=20_000)) as consumer:
        await consumer.assign([queue])
        await eventually(lambda: broker.owners("orders") == 1)
        await consumer.seek_to_begin(queue)
        assert await polled(consumer, 1) == [b"1"]


async def test_a_paused_queue_gives_nothing_until_it_is_resumed(broker: MemoryBroker) -> None:
    first, second = broker.create_topic("orders", 2)
    async with consuming(broker) as consumer:
        await consumer.assign([first, second])
        await eventually(lambda: broker.owners("orders") == 2)
        consumer.pause([first])
        broker.put("orders", b"1", queue_id=0)
        broker.put("orders", b"2", queue_id=1)
        assert await polled(consumer, 1) == [b"2"]
        assert await consumer.poll(0.1) == []
        consumer.resume([first])
        assert await polled(consumer, 1) == [b"1"]


async def test_a_full_cache_is_not_pulled_into(broker: MemoryBroker) -> None:
    (queue,) = broker.create_topic("orders", 1)
    broker.put("orders", *(b"%d" % number for number in range(100)))
    limits = CacheLimits(queue_messages_max=10)
    config = LitePullConfig(consume_from="first", pull_count=5, cache=limits, wait_ms=200)
    async with consuming(broker, config) as consumer:
        await consumer.assign([queue])
        assert await consumer.poll(60) != []

        def pulls() -> list[str]:
            return [fields["queueOffset"] for code, fields in broker.seen if code == RequestCode.LITE_PULL_MESSAGE]

        await eventually(lambda: len(pulls()) == 3)
        assert pulls() == ["0", "5", "10"]
        assert len(await polled(consumer, 95)) == 95


@pytest.mark.parametrize(
    ("consume_from", "bodies"), [("last", [b"new"]), ("first", [b"old", b"new"])], ids=["last", "first"]
)
async def test_a_queue_without_a_commit_begins_where_the_configuration_says(
    broker: MemoryBroker, consume_from: str, bodies: list[bytes]
) -> None:
    (queue,) = broker.create_topic("orders", 1)
    broker.put("orders", b"old")
    async with consuming(broker, LitePullConfig(consume_from=consume_from, wait_ms=200)) as consumer:
        await consumer.assign([queue])
        await eventually(lambda: broker.owners("orders") == 1)
        broker.put("orders", b"new")
        assert await polled(consumer, len(bodies)) == bodies


async def test_a_queue_without_a_commit_may_begin_at_a_moment(broker: MemoryBroker) -> None:
    (queue,) = broker.create_topic("orders", 1)
    broker.put("orders", b"old")
    moment = datetime.fromtimestamp(broker.queues[queue][0].store_timestamp_ms / 1000 - 60, UTC)
    async with consuming(broker, LitePullConfig(consume_from=moment, wait_ms=200)) as consumer:
        await consumer.assign([queue])
        assert await polled(consumer, 1) == [b"old"]
        assert await consumer.offset_at(queue, int(moment.timestamp() * 1000)) == 0


async def test_an_offset_that_was_deleted_moves_to_the_first_that_is_there(broker: MemoryBroker) -> None:
    (queue,) = broker.create_topic("orders", 1)
    broker.put("orders", b"1", b"2", b"3")
    broker.first_offsets[queue] = 1_000
    async with consuming(broker) as consumer:
        await consumer.assign([queue])
        assert await polled(consumer, 3) == [b"1", b"2", b"3"]


async def test_pulls_carry_the_subscription_and_the_lite_flag(broker: MemoryBroker) -> None:
    (queue,) = broker.create_topic("orders", 1)
    async with consuming(broker) as consumer:
        await consumer.assign([queue], {"orders": "paid"})
        await eventually(lambda: broker.owners("orders") == 1)
    (fields, *_) = [fields for code, fields in broker.seen if code == RequestCode.LITE_PULL_MESSAGE]
    assert (fields["subscription"], fields["subVersion"], fields["sysFlag"]) == ("paid", "0", str(2 | 4 | 16))


async def test_an_sql_expression_is_told_with_the_heartbeat_and_with_pulls(broker: MemoryBroker) -> None:
    broker.create_topic("orders", 1)
    async with consuming(broker) as consumer:
        consumer.subscribe("orders", sql="cents > 100")
        await eventually(lambda: any(code == RequestCode.LITE_PULL_MESSAGE for code, _ in broker.seen))
        told = broker.subscriptions[GROUP]["orders"]
        assert (told.sub_string, told.expression_type) == ("cents > 100", "SQL92")
        with pytest.raises(MessageError, match="blank"):
            consumer.subscribe("orders", sql=" ")
    (fields, *_) = [fields for code, fields in broker.seen if code == RequestCode.LITE_PULL_MESSAGE]
    assert (fields["subscription"], fields["expressionType"]) == ("cents > 100", "SQL92")


async def test_in_a_namespace_only_brokers_see_the_whole_names(broker: MemoryBroker) -> None:
    (whole,) = broker.create_topic("prod%orders", 1)
    broker.put("prod%orders", b"1")
    async with consuming(broker, replace(FIRST, namespace="prod")) as consumer:
        consumer.subscribe("orders")
        await eventually(lambda: len(consumer.assignment) == 1)
        (queue,) = consumer.assignment
        assert queue.topic == "orders"
        (message,) = await eventually(lambda: consumer.poll(1))
        assert (message.topic, message.queue) == ("orders", queue)
        await consumer.seek_to_begin(queue)
        assert await polled(consumer, 1) == [b"1"]
        await consumer.unsubscribe("orders")
        await eventually(lambda: not consumer.assignment)
    assert broker.offsets == {("prod%reports", whole): 1}


async def test_a_broker_that_refuses_is_asked_again(broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remoting.client.lite_pull_consumer.FAILED_PULL_PAUSE_S", 0.01)
    (queue,) = broker.create_topic("orders", 1)
    broker.put("orders", b"1")
    refusals: list[Command] = []

    def refuse(request: Command) -> Command | None:
        refusals.append(request)
        return response(request, ResponseCode.SYSTEM_BUSY) if len(refusals) < 3 else None

    broker.faults[RequestCode.LITE_PULL_MESSAGE] = refuse
    async with consuming(broker) as consumer:
        await consumer.assign([queue])
        assert await polled(consumer, 1) == [b"1"]


async def test_a_topic_that_is_made_later_is_read_when_it_is_there(broker: MemoryBroker) -> None:
    async with consuming(broker) as consumer:
        consumer.subscribe("later")
        assert await consumer.poll(0.1) == []
        broker.create_topic("later", 1)
        broker.put("later", b"1")
        assert await polled(consumer, 1) == [b"1"]
        await consumer.unsubscribe("later")
        assert consumer.assignment == frozenset()


async def test_a_caller_that_assigns_hears_of_new_queues(broker: MemoryBroker) -> None:
    broker.create_topic("orders", 1)
    seen: list[tuple[str, int]] = []
    async with consuming(broker) as consumer:
        assert len(await consumer.queues("orders")) == 1
        consumer.on_queues_changed("orders", lambda topic, queues: seen.append((topic, len(queues))))
        broker.create_topic("orders", 3)
        await consumer._instance.routes.refresh_all()
        assert seen == [("orders", 3)]


@pytest.mark.parametrize("turns", range(1, 10))
async def test_closing_that_is_cancelled_leaves_the_group_and_nothing_that_runs(
    broker: MemoryBroker, turns: int
) -> None:
    broker.create_topic("orders", 1)
    broker.put("orders", b"1")
    before = asyncio.all_tasks()
    consumer = LitePullConsumer(broker.namesrv, GROUP, FIRST)
    await consumer.start()
    consumer.subscribe("orders")
    assert await polled(consumer, 1) == [b"1"]
    await cancelled_after(consumer.close(), turns)
    assert not broker.members[GROUP]
    with pytest.raises(ClientError, match="is not running"):
        await consumer.poll()
    await eventually(lambda: asyncio.all_tasks() <= before)


async def test_closing_that_is_cancelled_as_it_begins_commits_what_was_polled(broker: MemoryBroker) -> None:
    (queue,) = broker.create_topic("orders", 1)
    broker.put("orders", b"1")
    consumer = LitePullConsumer(broker.namesrv, GROUP, FIRST)
    await consumer.start()
    consumer.subscribe("orders")
    assert await polled(consumer, 1) == [b"1"]
    await cancelled_after(consumer.close(), 1)
    assert committed(broker, queue) == 1


@pytest.fixture
def under_way(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many commits were under way when each began, itself included."""
    running = 0
    counts: list[int] = []
    commit = QueueRequests.commit

    async def counted(requests: QueueRequests, queue: MessageQueue, offset: int) -> None:
        nonlocal running
        running += 1
        counts.append(running)
        await commit(requests, queue, offset)
        await asyncio.sleep(0.01)
        running -= 1

    monkeypatch.setattr(QueueRequests, "commit", counted)
    return counts


@pytest.mark.parametrize("says_offsets", [False, True])
async def test_no_commit_of_a_topic_is_under_way_beside_its_first(
    broker: MemoryBroker, under_way: list[int], says_offsets: bool
) -> None:
    """Apache's broker loses one of two that come at once when it has none of the topic and group yet."""
    queues = broker.create_topic("orders", 4)
    async with consuming(broker, replace(FIRST, auto_commit_interval_s=3600)) as consumer:
        await consumer.assign(queues)
        for queue in queues:
            await consumer.seek(queue, 0)
        broker.put("orders", *(b"%d" % number for number in range(8)))
        await polled(consumer, 8)
        await consumer.commit(dict.fromkeys(queues, 1) if says_offsets else None)
    assert under_way[:4] == [1, 1, 2, 3]
    assert {committed(broker, queue) for queue in queues} == {2}


async def test_a_commit_waits_for_the_one_before(broker: MemoryBroker, under_way: list[int]) -> None:
    (queue,) = broker.create_topic("orders", 1)
    async with consuming(broker, LitePullConfig(consume_from="first", auto_commit=False)) as consumer:
        await consumer.assign([queue])
        broker.put("orders", b"1", b"2")
        await polled(consumer, 2)
        await asyncio.gather(consumer.commit({queue: 1}), consumer.commit(), consumer.commit())
    assert under_way == [1, 1]
    assert committed(broker, queue) == 2


async def test_a_consumer_works_between_start_and_close_only(broker: MemoryBroker) -> None:
    (queue,) = broker.create_topic("orders", 1)
    consumer = LitePullConsumer(broker.namesrv, GROUP, FIRST)
    with pytest.raises(ClientError, match="is not running"):
        await consumer.poll()
    await consumer.assign([queue])  # before the start, as Java allows
    broker.put("orders", b"1")
    await consumer.start()
    with pytest.raises(ClientError, match="runs already"):
        await consumer.start()
    assert await polled(consumer, 1) == [b"1"]
    await consumer.close()
    await consumer.close()
    with pytest.raises(ClientError, match="is not running"):
        await consumer.commit()
    assert broker.members[GROUP] == {}


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: LitePullConfig(auto_commit_interval_s=0.5), "1 s at least"),
        (lambda: LitePullConfig(pull_count=33), "1 to 32"),
        (lambda: LitePullConfig(consume_from="yesterday"), "neither"),
        (lambda: LitePullConfig(consume_from=datetime(2026, 1, 1)), "no time zone"),
    ],
    ids=["interval", "count", "word", "naive moment"],
)
def test_settings_out_of_range_are_refused(make: Callable[[], LitePullConfig], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()


async def test_names_and_expressions_that_rocketmq_would_not_take_are_refused(broker: MemoryBroker) -> None:
    with pytest.raises(MessageError):
        LitePullConsumer(broker.namesrv, "a b")
    async with consuming(broker) as consumer:
        with pytest.raises(MessageError, match="names no tag"):
            consumer.subscribe("orders", "||")
        with pytest.raises(MessageError, match="topic name"):
            consumer.subscribe("a b")
