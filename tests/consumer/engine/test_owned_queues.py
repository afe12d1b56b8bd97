"""Owned queues and their pull loops over a broker in memory, with a `Consuming` that consumes when a test says so."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from consumer.engine.brokers import Brokers
from consumer.engine.clock import now_ms
from consumer.engine.consuming import Consuming
from consumer.engine.flow_control import FlowControl
from consumer.engine.owned_queues import OwnedQueues
from consumer.engine.process_queue import CachedMessage, ProcessQueue
from consumer.engine.pull_loop import PullContext
from consumer.engine.start_position import start_rule
from consumer.engine.statistics import Statistics
from consumer.engine.subscriptions import subscribe
from consumer.engine.suspension import Suspension
from remoting.client.instance import ClientInstance
from remoting.wire.bodies.heartbeat import ConsumerData
from remoting.wire.bodies.message_queue import MessageQueue
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_offsets import MemoryOffsetStore
from tests.support.waiting import eventually

QUEUE = MessageQueue("orders", "memory", 0)


class ConsumingByHand(Consuming):
    """Keeps what is submitted until `finish`."""

    def __init__(self) -> None:
        self.submitted: list[CachedMessage] = []

    def start(self) -> None: ...

    def submit(self, messages: list[CachedMessage]) -> None:
        self.submitted.extend(messages)

    async def stop(self, timeout_s: float) -> int:
        return 0

    async def close(self) -> None: ...

    @property
    def bodies(self) -> list[bytes]:
        return [cached.stored.body for cached in self.submitted]

    def finish(self, count: int) -> None:
        """Removes the first `count` messages from their process queues."""
        for cached in self.submitted[:count]:
            cached.process_queue.remove([cached])


class Setup:
    """Owned queues of group billing, with at most three messages per queue in memory."""

    def __init__(self, broker: MemoryBroker) -> None:
        self.broker = broker
        self.client = ClientInstance(broker.namesrv)
        self.consuming = ConsumingByHand()
        self.offsets = MemoryOffsetStore()
        self.subscriptions = subscribe("billing", {"orders": "*"}, now_ms())
        self.process_queues: dict[MessageQueue, ProcessQueue] = {}
        brokers = Brokers(self.client, "billing")
        context = PullContext(
            brokers=brokers,
            offsets=self.offsets,
            subscriptions=self.subscriptions,
            statistics=Statistics(now_ms),
            clock=now_ms,
            consuming=self.consuming,
            suspension=Suspension(),
            flow_control=FlowControl(messages_for_queue=3),
            process_queues=self.process_queues,
            request_heartbeat=lambda: None,
        )
        self.owned = OwnedQueues(
            group="billing",
            process_queues=self.process_queues,
            offsets=self.offsets,
            brokers=brokers,
            start_rule=start_rule("first"),
            clock=now_ms,
            context=context,
        )


@pytest.fixture
async def setup() -> AsyncIterator[Setup]:
    async with MemoryBroker() as broker:
        broker.create_topic("orders", 1)
        made = Setup(broker)
        await made.client.routes.get("orders")
        data = ConsumerData(group_name="billing", subscription_data_set=made.subscriptions.to_wire())
        made.client.heartbeats.add_consumer("billing", lambda: data)
        await made.client.heartbeats.send_now()
        yield made
        await made.owned.stop_pulling()
        await made.client.close()


async def test_messages_of_a_taken_queue_are_submitted_in_order(setup: Setup) -> None:
    setup.broker.put("orders", b"1", b"2")
    await setup.owned.take(QUEUE)
    await eventually(lambda: setup.consuming.bodies == [b"1", b"2"])
    assert setup.owned.queues == [QUEUE]
    assert setup.offsets.held_offset(QUEUE) == 0


async def test_a_pull_loop_waits_until_messages_are_removed_from_a_full_queue(setup: Setup) -> None:
    setup.broker.put("orders", b"1", b"2", b"3", b"4")
    await setup.owned.take(QUEUE)
    await eventually(lambda: len(setup.consuming.submitted) == 4)
    setup.broker.put("orders", b"5")
    assert setup.broker.owners("orders") == 0
    assert len(setup.consuming.submitted) == 4
    setup.consuming.finish(1)
    await eventually(lambda: setup.consuming.bodies[4:] == [b"5"])


async def test_a_released_queue_is_not_pulled_any_more_and_its_offset_is_stored(setup: Setup) -> None:
    await setup.owned.take(QUEUE)
    await eventually(lambda: setup.broker.owners("orders") == 1)
    process_queue = setup.process_queues[QUEUE]
    setup.offsets.advance(QUEUE, 7)
    await setup.owned.release([QUEUE])
    assert process_queue.is_dropped
    assert (setup.owned.queues, setup.process_queues) == ([], {})
    assert (setup.offsets.stored, setup.offsets.held_offset(QUEUE)) == ({QUEUE: 7}, None)


async def test_a_reset_drops_what_was_pulled_and_pulls_from_the_new_offset(setup: Setup) -> None:
    setup.broker.put("orders", b"1", b"2", b"3")
    await setup.owned.take(QUEUE)
    await eventually(lambda: len(setup.consuming.submitted) == 3)
    before = setup.process_queues[QUEUE]
    setup.owned.reset({QUEUE: 1, MessageQueue("orders", "memory", 5): 9})
    await eventually(lambda: setup.consuming.bodies[3:] == [b"2", b"3"])
    assert before.is_dropped
    assert setup.offsets.stored == {QUEUE: 1}


async def test_what_was_under_way_at_a_reset_does_not_move_the_offset(setup: Setup) -> None:
    """Java freezes the entry; here the results of a dropped process queue count for nothing."""
    setup.broker.put("orders", b"1", b"2", b"3")
    await setup.owned.take(QUEUE)
    await eventually(lambda: len(setup.consuming.submitted) == 3)
    before = setup.consuming.submitted[2]
    setup.owned.reset({QUEUE: 1})
    await eventually(lambda: setup.offsets.stored == {QUEUE: 1})
    assert before.process_queue.remove(before) == -1
    await setup.owned.persist()
    assert (setup.offsets.held_offset(QUEUE), setup.offsets.stored) == (1, {QUEUE: 1})


async def test_a_queue_that_was_owned_before_begins_at_what_is_stored_not_at_what_is_remembered(setup: Setup) -> None:
    await setup.owned.take(QUEUE)
    await eventually(lambda: setup.broker.owners("orders") == 1)
    await setup.owned.release([QUEUE])
    setup.broker.put("orders", b"1", b"2", b"3")
    setup.offsets.stored[QUEUE] = 2  # another member has consumed meanwhile
    await setup.owned.take(QUEUE)
    await eventually(lambda: setup.consuming.bodies == [b"3"])
    assert setup.offsets.held_offset(QUEUE) == 2
