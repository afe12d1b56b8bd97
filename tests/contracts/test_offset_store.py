"""One suite for all offset stores: the broker's, the file on this machine, and their twin in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from consumer.engine.brokers import Brokers
from consumer.engine.offset_store import OffsetStore
from consumer.engine.offset_store.local import LocalOffsetStore
from consumer.engine.offset_store.remote import RemoteOffsetStore
from remoting.client.instance import ClientInstance
from remoting.wire.bodies.message_queue import MessageQueue
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_offsets import MemoryOffsetStore
from tests.support.waiting import eventually

GROUP = "billing"
QUEUE = MessageQueue("orders", "memory", 0)
OTHER = MessageQueue("orders", "memory", 1)

# A store of its own view on what is stored, each time it is called.
MakeStore = Callable[[], Awaitable[OffsetStore]]


@pytest.fixture(params=["memory", "local", "remote"])
async def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MakeStore]:
    opened: list[LocalOffsetStore] = []

    async def reopened() -> OffsetStore:
        """One member of the group on this machine after the other."""
        for store in opened:
            await store.close()
        opened.append(LocalOffsetStore(tmp_path / GROUP))
        await opened[-1].open()
        return opened[-1]

    if request.param == "local":
        yield reopened
        for store in opened:
            await store.close()
        return
    if request.param == "memory":
        stored: dict[MessageQueue, int] = {}

        async def in_memory() -> OffsetStore:
            return MemoryOffsetStore(stored)

        yield in_memory
        return
    async with MemoryBroker() as broker:
        broker.create_topic("orders", 2)
        client = ClientInstance(broker.namesrv)
        await client.routes.get("orders")

        async def at_the_broker() -> OffsetStore:
            return RemoteOffsetStore(Brokers(client, GROUP))

        yield at_the_broker
        await client.close()


async def test_nothing_is_stored_at_first(make_store: MakeStore) -> None:
    store = await make_store()
    assert await store.load(QUEUE) is None
    assert store.held_offset(QUEUE) is None


async def test_what_was_surely_persisted_is_loaded_by_another(make_store: MakeStore) -> None:
    store = await make_store()
    store.advance(QUEUE, 17)
    assert await store.persist_and_confirm([QUEUE, OTHER]) == []
    assert await (await make_store()).load(QUEUE) == 17
    assert await (await make_store()).load(OTHER) is None


async def test_what_was_persisted_is_loaded_by_another_soon(make_store: MakeStore) -> None:
    store = await make_store()
    store.advance(QUEUE, 17)
    await store.persist([QUEUE])
    other = await make_store()

    async def arrived() -> bool:
        return await other.load(QUEUE) == 17

    await eventually(arrived)


async def test_only_the_queues_asked_for_are_persisted(make_store: MakeStore) -> None:
    store = await make_store()
    store.advance(QUEUE, 17)
    store.advance(OTHER, 18)
    await store.persist_and_confirm([OTHER])
    assert await (await make_store()).load(QUEUE) is None


async def test_progress_only_grows_but_a_reset_goes_anywhere(make_store: MakeStore) -> None:
    store = await make_store()
    store.advance(QUEUE, 17)
    store.advance(QUEUE, 5)
    assert store.held_offset(QUEUE) == 17
    store.reset(QUEUE, 5)
    assert store.held_offset(QUEUE) == 5


async def test_loading_forgets_what_was_known(make_store: MakeStore) -> None:
    store = await make_store()
    store.advance(QUEUE, 17)
    await store.load(QUEUE)
    assert store.held_offset(QUEUE) is None


async def test_a_forgotten_queue_is_not_persisted(make_store: MakeStore) -> None:
    store = await make_store()
    store.advance(QUEUE, 17)
    store.forget(QUEUE)
    await store.persist_and_confirm([QUEUE])
    assert await (await make_store()).load(QUEUE) is None


async def test_the_remote_store_names_the_queues_that_it_could_not_persist() -> None:
    client = ClientInstance("127.0.0.1:1")
    store = RemoteOffsetStore(Brokers(client, GROUP))
    store.advance(QUEUE, 17)
    assert await store.persist_and_confirm([QUEUE]) == [QUEUE]
    await client.close()


async def test_no_commit_of_a_topic_is_under_way_beside_its_first() -> None:
    """Apache's broker loses one of two that come at once when it has none of the topic and group yet."""
    under_way: list[MessageQueue] = []
    seen: list[tuple[str, int]] = []

    class CountingBrokers(Brokers):
        async def commit(self, queue: MessageQueue, offset: int) -> None:
            under_way.append(queue)
            seen.append((queue.topic, sum(one.topic == queue.topic for one in under_way)))
            await asyncio.sleep(0.01)
            under_way.remove(queue)

    client = ClientInstance("127.0.0.1:1")
    store = RemoteOffsetStore(CountingBrokers(client, GROUP))
    queues = [MessageQueue(topic, "memory", queue_id) for topic in ("orders", "refunds") for queue_id in range(4)]
    for queue in queues:
        store.advance(queue, 17)
    assert await store.persist_and_confirm(queues) == []
    await client.close()
    for topic in ("orders", "refunds"):
        assert [count for name, count in seen if name == topic] == [1, 1, 2, 3]


async def test_offsets_of_queues_that_another_member_may_own_are_not_committed() -> None:
    """A member that was paused for long finds the group further on than itself."""
    async with MemoryBroker() as broker:
        broker.create_topic("orders", 2)
        client = ClientInstance(broker.namesrv)
        await client.routes.get("orders")
        store = RemoteOffsetStore(Brokers(client, GROUP), may_commit=lambda queue: queue == OTHER)
        store.advance(QUEUE, 17)
        store.advance(OTHER, 18)
        assert await store.persist_and_confirm([QUEUE, OTHER]) == []
        await store.persist([QUEUE, OTHER])
        assert (store.offset_with_pull(QUEUE), store.offset_with_pull(OTHER)) == (0, 18)
        assert await store.load(QUEUE) is None
        assert await store.load(OTHER) == 18
        await client.close()


async def test_an_offset_that_is_as_it_was_loaded_is_not_committed_again() -> None:
    """Without locks another member may have gone on meanwhile, and the broker would take the smaller one."""
    async with MemoryBroker() as broker:
        broker.create_topic("orders", 2)
        client = ClientInstance(broker.namesrv)
        await client.routes.get("orders")
        broker.offsets[GROUP, QUEUE] = 5
        store = RemoteOffsetStore(Brokers(client, GROUP))
        store.advance(QUEUE, await store.load(QUEUE) or 0)
        broker.offsets[GROUP, QUEUE] = 9
        assert await store.persist_and_confirm([QUEUE]) == []
        assert (store.offset_with_pull(QUEUE), broker.offsets[GROUP, QUEUE]) == (0, 9)
        store.advance(QUEUE, 10)
        assert await store.persist_and_confirm([QUEUE]) == []
        assert broker.offsets[GROUP, QUEUE] == 10
        store.reset(QUEUE, 5)
        assert await store.persist_and_confirm([QUEUE]) == []
        assert broker.offsets[GROUP, QUEUE] == 5
        await client.close()
