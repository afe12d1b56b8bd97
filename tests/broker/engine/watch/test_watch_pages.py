"""A watch answer of several pages: complete, consistent with what changes meanwhile, and never long at a time."""

from __future__ import annotations

import pytest

from broker.engine.config import BrokerConfig
from broker.engine.runtime import BrokerRuntime
from broker.engine.watch import watch_states
from remoting.client.admin import Admin
from remoting.client.connections import Connections
from remoting.client.errors import BrokerRefused
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.headers.watch import WatchHeader


class Large:
    """A broker with many topics that a group reads, made in memory."""

    def __init__(self, runtime: BrokerRuntime) -> None:
        self.runtime = runtime
        self.broker = runtime.broker
        self.connections = Connections()
        self.admin = Admin(self.connections)
        self.address = runtime.config.address

    def fill(self, topic_count: int, queue_count: int = 8) -> None:
        table = self.broker.topics.table.topic_config_table
        for number in range(topic_count):
            name = f"topic-{number:05}"
            table[name] = TopicConfig(topic_name=name, read_queue_nums=queue_count, write_queue_nums=queue_count)
            for queue_id in range(queue_count):
                self.broker.groups.offsets.commit("readers", name, queue_id, number)

    async def page(self, page: int | None = None, since: int = 0) -> tuple:
        boot = self.broker.watch.boot if since else ""
        return await self.admin.our_broker.watch_page(self.address, WatchHeader(boot=boot, since=since, page=page))


@pytest.fixture
async def large(tmp_path):
    runtime = BrokerRuntime(BrokerConfig(store=tmp_path / "store", port=0, namesrv_port=0, flush="async"))
    await runtime.start()
    large = Large(runtime)
    yield large
    await large.connections.close()
    await runtime.stop()


async def test_a_snapshot_of_many_pages_is_complete_and_names_everything_once(large, monkeypatch):
    monkeypatch.setattr(watch_states, "PAGE_PARTS_MAX", 7)
    large.fill(20)
    header, body = await large.admin.our_broker.watch(large.address)
    assert header.is_snapshot
    names = [topic.topic_name for topic in body.topics]
    assert len(names) == len(set(names))
    assert {f"topic-{number:05}" for number in range(20)} <= set(names)
    ours = [(queue.topic, queue.queue_id) for queue in body.queues if queue.topic.startswith("topic-")]
    assert sorted(ours) == [(f"topic-{number:05}", queue_id) for number in range(20) for queue_id in range(8)]
    assert len(body.committed) == 160
    assert body.scheduler is not None


async def test_changes_may_have_several_pages_too(large, monkeypatch):
    header, _ = await large.admin.our_broker.watch(large.address)
    monkeypatch.setattr(watch_states, "PAGE_PARTS_MAX", 3)
    for number in range(10):
        await large.admin.topics.create(large.address, TopicConfig(topic_name=f"new-{number}"))
    changed, body = await large.admin.our_broker.watch(large.address, boot=header.boot, since=header.revision)
    assert not changed.is_snapshot
    assert len(body.events) == 10
    assert {topic.topic_name for topic in body.topics} == {f"new-{number}" for number in range(10)}


async def test_what_changes_between_two_pages_is_told_after_the_last(large, monkeypatch):
    monkeypatch.setattr(watch_states, "PAGE_PARTS_MAX", 5)
    large.fill(10)
    first, _ = await large.page()
    await large.admin.topics.create(large.address, TopicConfig(topic_name="came-meanwhile"))
    header, names = first, set()
    while header.next_page:
        header, body = await large.page(header.next_page)
        names |= {topic.topic_name for topic in body.topics}
    assert header.revision == first.revision
    assert "came-meanwhile" not in names
    _, changed = await large.admin.our_broker.watch(large.address, boot=first.boot, since=first.revision)
    assert [topic.topic_name for topic in changed.topics] == ["came-meanwhile"]


async def test_a_page_that_was_not_announced_is_refused_with_what_to_do(large):
    with pytest.raises(BrokerRefused, match="ask for everything anew"):
        await large.page(3)
