"""Members that consume in order against a broker in memory: failing, resting, joining, leaving, losing their locks."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from consumer.engine.config import ConsumerConfig
from consumer.engine.consume_concurrently import ConcurrentLimits
from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.outcomes import Later
from consumer.engine.push_consumer import PushConsumer
from consumer.engine.start_position import start_rule
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from tests.support.memory_broker import BROKER_NAME, MemoryBroker
from tests.support.waiting import eventually

GROUP = "billing"
DLQ = f"%DLQ%{GROUP}"
SUSPEND_MS = 10


@pytest.fixture
async def broker() -> AsyncIterator[MemoryBroker]:
    async with MemoryBroker() as memory:
        memory.create_topic("orders", 4)
        yield memory


class Members:
    def __init__(self, broker: MemoryBroker) -> None:
        self.broker = broker
        self._running: list[PushConsumer] = []

    async def start(self, call: Callable[[Message], Any], *, is_async: bool = True, **config: Any) -> PushConsumer:
        settings = {"start": start_rule("first"), "is_orderly": True, "suspend_ms": SUSPEND_MS, **config}
        listener = Listener("orders", call, is_async=is_async)
        member = PushConsumer(ConsumerConfig(self.broker.namesrv, GROUP, **settings), {"orders": listener})
        await member.start()
        self._running.append(member)
        return member

    async def stop(self, member: PushConsumer) -> None:
        self._running.remove(member)
        await member.stop()

    async def stop_all(self) -> None:
        for member in list(self._running):
            await self.stop(member)


@pytest.fixture
async def members(broker: MemoryBroker) -> AsyncIterator[Members]:
    started = Members(broker)
    yield started
    await started.stop_all()


class Order:
    """A listener that writes down, by queue, what came, and whether two calls for a queue were ever under way."""

    def __init__(self) -> None:
        self.seen: dict[int, list[str]] = defaultdict(list)
        self.running: set[int] = set()
        self.overlaps: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}

    async def __call__(self, message: Message) -> None:
        assert message.queue is not None
        queue_id = message.queue.queue_id
        if queue_id in self.running:
            self.overlaps.append(message.text)
        self.running.add(queue_id)
        self.seen[queue_id].append(message.text)
        try:
            await asyncio.sleep(0)
            if message.text in self.gates:
                await self.gates[message.text].wait()
        finally:
            self.running.discard(queue_id)

    @property
    def count(self) -> int:
        return sum(len(seen) for seen in self.seen.values())


def queue_ids(member: PushConsumer) -> list[int]:
    return sorted(queue.queue_id for queue in member.queues if queue.topic == "orders")


def numbers(first: int, end: int) -> list[bytes]:
    return [str(number).encode() for number in range(first, end)]


async def test_each_queue_is_consumed_in_order_and_the_queues_beside_each_other(
    broker: MemoryBroker, members: Members
) -> None:
    listen = Order()
    listen.gates = {str(first): asyncio.Event() for first in range(4)}
    broker.put("orders", *numbers(0, 400))
    await members.start(listen)
    await eventually(lambda: len(listen.running) == 4)
    for gate in listen.gates.values():
        gate.set()
    await eventually(lambda: listen.count == 400)
    assert listen.overlaps == []
    for queue_id in range(4):
        assert listen.seen[queue_id] == [str(number) for number in range(queue_id, 400, 4)]


async def test_a_plain_function_is_called_for_one_message_of_a_queue_at_a_time(
    broker: MemoryBroker, members: Members
) -> None:
    lock, running, overlaps = threading.Lock(), set[int](), list[str]()
    seen: dict[int, list[str]] = defaultdict(list)

    def listen(message: Message) -> None:
        assert message.queue is not None
        queue_id = message.queue.queue_id
        with lock:
            if queue_id in running:
                overlaps.append(message.text)
            running.add(queue_id)
        seen[queue_id].append(message.text)
        with lock:
            running.discard(queue_id)

    broker.put("orders", *numbers(0, 400))
    await members.start(listen, is_async=False, concurrent=ConcurrentLimits(threads=8))
    await eventually(lambda: sum(map(len, seen.values())) == 400)
    assert overlaps == []
    for queue_id in range(4):
        assert seen[queue_id] == [str(number) for number in range(queue_id, 400, 4)]


async def test_a_message_that_fails_holds_up_its_queue_alone_and_comes_again_at_once(
    broker: MemoryBroker, members: Members
) -> None:
    seen: dict[int, list[tuple[str, int]]] = defaultdict(list)

    async def listen(message: Message) -> None:
        assert message.queue is not None
        seen[message.queue.queue_id].append((message.text, message.reconsume_times))
        if message.text == "0" and message.reconsume_times < 3:
            raise Later

    broker.put("orders", *numbers(0, 12))
    await members.start(listen)
    await eventually(lambda: sum(map(len, seen.values())) == 15)
    assert seen[0] == [("0", 0), ("0", 1), ("0", 2), ("0", 3), ("4", 0), ("8", 0)]
    assert seen[1] == [("1", 0), ("5", 0), ("9", 0)]


async def test_a_message_that_failed_too_often_is_a_dead_letter_and_its_queue_goes_on(
    broker: MemoryBroker, members: Members
) -> None:
    seen: list[tuple[str, int]] = []

    async def listen(message: Message) -> None:
        seen.append((message.text, message.reconsume_times))
        if message.text == "0":
            raise ValueError("never")

    broker.put("orders", b"0", b"1", queue_id=0)
    member = await members.start(listen, max_reconsume_times=2)
    await eventually(lambda: ("1", 0) in seen)
    assert seen == [("0", 0), ("0", 1), ("0", 2), ("1", 0)]
    (dead,) = broker.queues[MessageQueue(DLQ, BROKER_NAME, 0)]
    assert (dead.body, dead.properties["RETRY_TOPIC"]) == (b"0", "orders")
    await members.stop(member)
    assert broker.offsets[GROUP, MessageQueue("orders", BROKER_NAME, 0)] == 2


@pytest.mark.slow
async def test_a_dead_letter_that_no_broker_takes_holds_up_the_queue_until_one_does(
    broker: MemoryBroker, members: Members
) -> None:
    seen: list[tuple[str, int]] = []
    refusals = 0

    def refuse(request: Command) -> Command | None:
        nonlocal refusals
        refusals += 1
        return response(request, ResponseCode.SYSTEM_ERROR, "no") if refusals <= 2 else None

    async def listen(message: Message) -> None:
        seen.append((message.text, message.reconsume_times))
        if message.text == "0":
            raise Later

    broker.faults[RequestCode.SEND_MESSAGE_V2] = refuse
    broker.put("orders", b"0", b"1", queue_id=0)
    await members.start(listen, max_reconsume_times=0)
    await eventually(lambda: ("1", 0) in seen)
    assert seen[0] == ("0", 0)
    assert [text for text, _ in seen] == ["0"] * (len(seen) - 1) + ["1"]
    assert len(broker.queues[MessageQueue(DLQ, BROKER_NAME, 0)]) == 1


async def test_without_a_limit_a_message_in_order_never_becomes_a_dead_letter(broker: MemoryBroker) -> None:
    config = ConsumerConfig(broker.namesrv, GROUP, is_orderly=True)
    assert config.reconsume_limit == 2**31 - 1
    assert ConsumerConfig(broker.namesrv, GROUP).reconsume_limit == 16


@pytest.mark.parametrize("suspend_ms", [9, 30_001])
def test_a_rest_out_of_range_is_refused(suspend_ms: int) -> None:
    with pytest.raises(ValueError, match="10 to 30000 are allowed"):
        ConsumerConfig("127.0.0.1:1", GROUP, is_orderly=True, suspend_ms=suspend_ms)


@pytest.mark.slow
async def test_a_queue_that_moves_is_handed_over_when_its_listener_has_ended(
    broker: MemoryBroker, members: Members
) -> None:
    """No overlap, no message twice: the new member begins behind the one that the old one was in."""
    listen = Order()
    for number in ("0", "1", "2", "3"):
        listen.gates[number] = asyncio.Event()
    broker.put("orders", *numbers(0, 8))
    first = await members.start(listen)
    await eventually(lambda: listen.count == 4)
    second = await members.start(listen)
    await eventually(lambda: len(queue_ids(first)) == 2)
    moving = sorted(set(range(4)) - set(queue_ids(first)))
    # It asks again and again, and is refused while the listeners of the first run.
    await eventually(lambda: sum(1 for code, _ in broker.seen if code == RequestCode.LOCK_BATCH_MQ) > 8)
    assert queue_ids(second) == []
    assert listen.count == 4
    for gate in listen.gates.values():
        gate.set()
    await eventually(lambda: listen.count == 8)
    await eventually(lambda: queue_ids(second) == moving)
    assert listen.overlaps == []
    for queue_id in range(4):
        assert listen.seen[queue_id] == [str(queue_id), str(queue_id + 4)]


async def test_a_member_that_stops_gives_its_locks_back(broker: MemoryBroker, members: Members) -> None:
    listen = Order()
    first = await members.start(listen)
    await eventually(lambda: queue_ids(first) == [0, 1, 2, 3])
    assert broker.locks.has_unexpired(GROUP)
    await members.stop(first)
    assert not broker.locks.has_unexpired(GROUP)
    second = await members.start(listen)
    await eventually(lambda: queue_ids(second) == [0, 1, 2, 3])


async def test_a_stop_lets_the_running_message_end_and_begins_no_other(broker: MemoryBroker, members: Members) -> None:
    listen = Order()
    listen.gates["0"] = asyncio.Event()
    broker.put("orders", b"0", b"1", queue_id=0)
    member = await members.start(listen)
    await eventually(lambda: listen.count == 1)
    stopping = asyncio.create_task(members.stop(member))
    await eventually(lambda: not any(task.get_name().startswith("pull ") for task in asyncio.all_tasks()))
    listen.gates["0"].set()
    await stopping
    assert listen.seen[0] == ["0"]
    assert broker.offsets[GROUP, MessageQueue("orders", BROKER_NAME, 0)] == 1


@pytest.mark.slow
async def test_a_stop_keeps_the_lock_of_a_queue_whose_listener_runs_on(broker: MemoryBroker, members: Members) -> None:
    release = threading.Event()
    began = threading.Event()

    def listen(message: Message) -> None:
        began.set()
        release.wait(60)

    broker.put("orders", b"0", queue_id=0)
    member = await members.start(listen, is_async=False, stop_timeout_s=0.1)
    await eventually(began.is_set)
    await members.stop(member)
    locked = broker.locks.lock(GROUP, broker.create_topic("orders", 4), "another")
    release.set()
    assert [queue.queue_id for queue in locked] == [1, 2, 3]


@pytest.mark.slow
async def test_after_a_broken_connection_nothing_begins_before_the_lock_is_granted_again(
    broker: MemoryBroker, members: Members
) -> None:
    """A broker that was started again has no locks: whoever asks first consumes."""
    listen = Order()
    member = await members.start(listen)
    await eventually(lambda: queue_ids(member) == [0, 1, 2, 3] and broker.owners("orders") == 4)
    queues = broker.create_topic("orders", 4)
    broker.locks.unlock(GROUP, queues, member.client_id)
    broker.locks.lock(GROUP, queues[:1], "another")
    broker.members[GROUP][member.client_id].abort()
    broker.put("orders", *numbers(0, 4))
    await eventually(lambda: listen.count == 3)
    assert listen.seen == {1: ["1"], 2: ["2"], 3: ["3"]}
    assert 0 not in queue_ids(member)
    assert broker.offsets.get((GROUP, queues[0]), 0) == 0
    broker.locks.unlock(GROUP, queues[:1], "another")
    await eventually(lambda: listen.seen[0] == ["0"])


async def test_a_reset_while_a_listener_runs_makes_no_two_of_a_queue(broker: MemoryBroker, members: Members) -> None:
    listen = Order()
    listen.gates["1"] = asyncio.Event()
    broker.put("orders", b"0", b"1", b"2", queue_id=0)
    member = await members.start(listen)
    await eventually(lambda: listen.seen[0] == ["0", "1"])
    body = b'{"offsetTable":{{"brokerName":"memory","queueId":0,"topic":"orders"}:0}}'
    reset = Command(
        code=RequestCode.RESET_CONSUMER_CLIENT_OFFSET, ext_fields={"topic": "orders", "group": GROUP}, body=body
    )
    await broker.ask_member(GROUP, member.client_id, reset)
    await eventually(lambda: broker.owners("orders") == 4)
    assert listen.seen[0] == ["0", "1"]
    listen.gates.pop("1").set()
    await eventually(lambda: len(listen.seen[0]) == 5)
    assert listen.seen[0] == ["0", "1", "0", "1", "2"]
    assert listen.overlaps == []


async def test_running_info_tells_that_queues_are_consumed_in_order_and_locked(
    broker: MemoryBroker, members: Members
) -> None:
    member = await members.start(Order())
    await eventually(lambda: queue_ids(member) == [0, 1, 2, 3])
    info = member.running_info()
    assert info.properties["PROP_CONSUMEORDERLY"] == "true"
    assert {queue.locked for queue in info.queues.values()} == {True}
