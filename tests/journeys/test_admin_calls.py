"""Every call of the admin client, against Apache 5.4.0, Apache of the 4 line, and our broker.

Each must see the same on all three, but for what `NOT_SUPPORTED` and the tests themselves name.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass

import pytest
import pytest_asyncio

from remoting.client.admin import Admin
from remoting.client.admin.groups import GroupChange
from remoting.client.admin.partial import ask_each
from remoting.client.errors import BrokerRefused, GroupNotFound, NotConnected, NotSupported
from remoting.client.instance import ClientInstance
from remoting.client.producer import Producer
from remoting.client.send_result import SendResult
from remoting.wire.bodies.consume_directly import ConsumeDirectlyResult
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.heartbeat import ConsumerData, SubscriptionData
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.progress import write_client_progress
from remoting.wire.bodies.running_info import ConsumerRunningInfo, ProcessQueueInfo, write_running_info
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import response
from remoting.wire.names import retry_topic
from remoting.wire.versions import version_name
from tests.support.apache import BROKER_NAME, CLUSTER, ApacheRocketMQ
from tests.support.java import OLD_APACHE_VERSION
from tests.support.our_broker import OurBroker
from tests.support.patience import answered
from tests.support.waiting import eventually

pytestmark = [pytest.mark.java, pytest.mark.journey]

OURS, APACHE, OLD = "ours", "apache", "old_apache"
QUEUE_COUNT = 2


@dataclass
class House:
    """One cluster, asked by the admin client; `kind` says which."""

    kind: str
    namesrv: str
    broker: str
    admin: Admin
    instance: ClientInstance
    producer: Producer
    fresh: Callable[[str], str]

    async def topic(self, word: str = "topic") -> str:
        name = self.fresh(word)
        config = TopicConfig(topic_name=name, read_queue_nums=QUEUE_COUNT, write_queue_nums=QUEUE_COUNT)
        await self.admin.topics.create(self.broker, config)
        await eventually(lambda: self._is_routed(name))
        return name

    async def group(self, word: str = "group") -> str:
        name = self.fresh(word)
        await self.admin.groups.create(self.broker, SubscriptionGroupConfig(group_name=name))
        return name

    async def send(self, topic: str, count: int = 1, **fields: object) -> list[SendResult]:
        """`count` messages to the topic's first queue, readable there."""
        queue = MessageQueue(topic, BROKER_NAME, 0)
        begun = await self.admin.offsets.max(self.broker, topic, 0)
        sent = [
            await answered(self.producer.send, topic, f"body {number}".encode(), queue=queue, **fields)  # type: ignore[arg-type]
            for number in range(count)
        ]
        await eventually(lambda: self._reached(topic, begun + count))
        return sent

    async def join(self, group: str, topic: str) -> None:
        """This process is a member of the group from now on, until `leave`."""
        subscription = SubscriptionData(topic=topic, sub_string="*", sub_version=1)
        entry = ConsumerData(group_name=group, subscription_data_set=[subscription])
        await answered(self.instance.routes.get, topic)
        self.instance.heartbeats.add_consumer(group, lambda: entry)
        await eventually(self._is_heard)

    async def leave(self, group: str) -> None:
        await self.instance.heartbeats.remove_consumer(group)

    async def _is_heard(self) -> bool:
        return await self.instance.heartbeats.send_now() == {self.broker}

    async def _is_routed(self, topic: str) -> bool:
        return topic in await self.admin.cluster.topics(self.namesrv)

    async def _reached(self, topic: str, max_offset: int) -> bool:
        return await self.admin.offsets.max(self.broker, topic, 0) == max_offset


@pytest_asyncio.fixture(params=[OURS, APACHE, OLD])
async def house(request: pytest.FixtureRequest, fresh: Callable[[str], str]) -> AsyncIterator[House]:
    cluster: OurBroker | ApacheRocketMQ = request.getfixturevalue(f"{request.param}_rocketmq")
    instance = ClientInstance(cluster.namesrv)
    instance.start()
    producer = Producer(cluster.namesrv, "admins", instance=instance, timeout_ms=60_000)
    await producer.start()
    admin = Admin(instance.connections, timeout_ms=60_000)
    yield House(request.param, cluster.namesrv, cluster.broker, admin, instance, producer, fresh)
    await producer.close()
    await instance.close()


async def not_supported(call: Awaitable[object], house: House) -> None:
    """What only some of the brokers know is an error of its own, with the version of who doesn't."""
    version = OLD_APACHE_VERSION if house.kind == OLD else ""
    with pytest.raises(NotSupported, match=f"is not supported by this broker: .* has version .*{version}"):
        await call


# the cluster and its name server


async def test_a_cluster_is_seen_with_its_brokers_topics_and_routes(house: House) -> None:
    topic = await house.topic()
    info = await house.admin.cluster.info(house.namesrv)
    assert info.broker_addr_table[BROKER_NAME].master_addr == house.broker
    assert info.cluster_addr_table == {CLUSTER: [BROKER_NAME]}
    route = await house.admin.cluster.route(house.namesrv, topic)
    assert [(queues.broker_name, queues.perm, queues.read_queue_nums) for queues in route.queue_datas] == [
        (BROKER_NAME, 6, QUEUE_COUNT)
    ]
    assert topic in await house.admin.cluster.topics(house.namesrv)
    assert topic in await house.admin.cluster.topics_of(house.namesrv, CLUSTER)
    assert await house.admin.cluster.topics_of(house.namesrv, "no-such-cluster") == []
    system = await house.admin.cluster.system_topics(house.namesrv)
    assert {CLUSTER, BROKER_NAME} <= set(system.topic_list)
    assert system.broker_addr == house.broker


async def test_a_route_is_deleted_on_a_name_server(house: House) -> None:
    topic = await house.topic()
    await house.admin.topics.delete(house.broker, topic)
    await house.admin.cluster.delete_route(house.namesrv, topic, CLUSTER)
    with pytest.raises(BrokerRefused) as refused:
        await house.admin.cluster.route(house.namesrv, topic)
    assert refused.value.code == ResponseCode.TOPIC_NOT_EXIST


async def test_a_broker_loses_the_permission_to_be_written_and_gets_it_back(house: House) -> None:
    topic = await house.topic()

    async def perm() -> int:
        return (await house.admin.cluster.route(house.namesrv, topic)).queue_datas[0].perm

    assert await house.admin.cluster.wipe_write_permission(house.namesrv, BROKER_NAME) > 0
    assert await perm() == 4
    assert await house.admin.cluster.add_write_permission(house.namesrv, BROKER_NAME) > 0
    assert await perm() == 6


async def test_a_name_servers_settings_are_read_and_a_forbidden_one_is_refused(house: House) -> None:
    settings = await house.admin.name_server.config(house.namesrv)
    assert settings["listenPort"] == house.namesrv.rpartition(":")[2]
    with pytest.raises(BrokerRefused) as refused:
        await house.admin.name_server.update_config(house.namesrv, {"kvConfigPath": "/elsewhere"})
    assert refused.value.code == ResponseCode.NO_PERMISSION


async def test_values_are_kept_by_a_name_server(house: House) -> None:
    names, namespace, key = house.admin.name_server, house.fresh("namespace"), "orders"
    assert await names.values(house.namesrv, namespace) == {}
    assert await names.value(house.namesrv, namespace, key) is None
    await names.put_value(house.namesrv, namespace, key, "broker-a:8")
    assert await names.values(house.namesrv, namespace) == {key: "broker-a:8"}
    assert await names.value(house.namesrv, namespace, key) == "broker-a:8"
    await names.delete_value(house.namesrv, namespace, key)
    assert await names.value(house.namesrv, namespace, key) is None


# brokers


async def test_a_broker_tells_how_it_runs(house: House) -> None:
    info: dict[str, str] = {}

    async def is_told() -> bool:
        # The 4 line fails in the second after its start, before it has taken its first sample.
        with suppress(BrokerRefused):
            info.update(await house.admin.brokers.runtime_info(house.broker))
        return bool(info)

    await eventually(is_told)
    assert {"brokerVersionDesc", "bootTimestamp", "putTps", "getTotalTps", "msgPutTotalTodayNow"} <= set(info)
    assert "TBW102" in await house.admin.brokers.system_topics(house.broker)


async def test_a_brokers_setting_is_changed_and_a_forbidden_one_refused(house: House) -> None:
    before = await house.admin.brokers.config(house.broker)
    assert before.settings["brokerName"] == BROKER_NAME
    await house.admin.brokers.update_config(house.broker, {"fileReservedTime": "71"})
    after = await house.admin.brokers.config(house.broker)
    assert after.settings["fileReservedTime"] == "71"
    await house.admin.brokers.update_config(house.broker, {"fileReservedTime": before.settings["fileReservedTime"]})


async def test_a_broker_counts_what_comes(house: House) -> None:
    topic = await house.topic()
    assert await house.admin.brokers.stats(house.broker, "TOPIC_PUT_NUMS", topic) is None
    await house.send(topic)
    assert await house.admin.brokers.stats(house.broker, "TOPIC_PUT_NUMS", topic) is not None


async def test_a_broker_cleans_up(house: House) -> None:
    brokers = house.admin.brokers
    for call in (brokers.clean_expired_consume_queues, brokers.clean_unused_topics, brokers.delete_expired_commit_log):
        with suppress(NotSupported) if house.kind == OURS else nullcontext():
            await call(house.broker)


# topics and groups


async def test_a_topic_is_made_changed_read_and_deleted(house: House) -> None:
    topic = await house.topic()
    config = await house.admin.topics.config(house.broker, topic)
    assert config is not None
    assert (config.read_queue_nums, config.perm) == (QUEUE_COUNT, 6)
    config.read_queue_nums = config.write_queue_nums = 3
    await house.admin.topics.create(house.broker, config)
    assert (await house.admin.topics.table(house.broker)).topic_config_table[topic].write_queue_nums == 3
    await house.send(topic, 2)
    stats = await house.admin.topics.stats(house.broker, topic)
    assert stats[MessageQueue(topic, BROKER_NAME, 0)].max_offset == 2
    assert await house.admin.topics.groups(house.broker, topic) == []
    await house.admin.topics.delete(house.broker, topic)
    assert await house.admin.topics.config(house.broker, topic) is None


async def test_a_group_is_made_changed_read_and_deleted(house: House) -> None:
    group = await house.group()
    changed = await house.admin.groups.change(house.broker, group, GroupChange(consume_enable=False, retry_max_times=3))
    assert (changed.consume_enable, changed.retry_max_times, changed.retry_queue_nums) == (False, 3, 1)
    assert await house.admin.groups.config(house.broker, group) == changed
    table = await house.admin.groups.table(house.broker)
    assert table.subscription_group_table[group] == changed
    await house.admin.groups.delete(house.broker, group, clean_offsets=True)
    assert await house.admin.groups.config(house.broker, group) is None
    with pytest.raises(GroupNotFound):
        await house.admin.groups.change(house.broker, group, GroupChange(consume_enable=True))


# members and producers


async def test_members_are_seen_and_answer_through_the_broker(house: House) -> None:
    topic, group = await house.topic(), await house.group()
    clients, on_request = house.admin.clients, house.instance.connections.on_request
    queue = MessageQueue(topic, BROKER_NAME, 0)
    info = ConsumerRunningInfo(properties={"a": "b"}, queues={queue: ProcessQueueInfo(commit_offset=5)}, jstack="main")
    verdict = ConsumeDirectlyResult(consume_result="CR_SUCCESS", spent_time_mills=3, remark="done")
    on_request[RequestCode.GET_CONSUMER_RUNNING_INFO] = lambda _, request: response(
        request, ResponseCode.SUCCESS, body=write_running_info(info)
    )
    on_request[RequestCode.CONSUME_MESSAGE_DIRECTLY] = lambda _, request: response(
        request, ResponseCode.SUCCESS, body=write_body(verdict)
    )
    on_request[RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT] = lambda _, request: response(
        request, ResponseCode.SUCCESS, body=write_client_progress({queue: 7})
    )
    me = house.instance.client_id
    (sent,) = await house.send(topic)

    assert await clients.consumers(house.broker, group) is None
    assert await clients.consumer_ids(house.broker, group) == []
    await house.join(group, topic)
    members = await clients.consumers(house.broker, group)
    assert members is not None
    assert [member.client_id for member in members.connection_set] == [me]
    assert await clients.consumer_ids(house.broker, group) == [me]
    if house.kind == OLD:
        await not_supported(clients.subscription(house.broker, group, topic), house)
    else:
        subscribed = await clients.subscription(house.broker, group, topic)
        assert subscribed.subscription_data is not None
        assert subscribed.subscription_data.sub_string == "*"
    assert group in await house.admin.topics.groups(house.broker, topic)

    told = await clients.running_info(house.broker, group, me, with_stacks=True)
    assert (told.queues[queue].commit_offset, told.jstack) == (5, "main")
    partial = await clients.running_infos(house.broker, group, [me, "nobody@1"])
    assert (list(partial.answers), list(partial.errors)) == ([me], ["nobody@1"])

    async def is_progress_told() -> bool:
        return await clients.progress(house.broker, group, topic, me) == {me: {queue: 7}}

    await eventually(is_progress_told)
    result = await clients.consume_directly(house.broker, group, me, sent.offset_message_id, topic)
    assert (result.consume_result, result.remark) == ("CR_SUCCESS", "done")

    await house.leave(group)

    async def is_refused() -> bool:
        try:
            await clients.running_info(house.broker, group, me)
        except BrokerRefused:
            return True
        return False

    await eventually(is_refused)
    with pytest.raises(BrokerRefused, match="not online"):
        await clients.running_info(house.broker, group, me)


async def test_producers_are_seen(house: House) -> None:
    await house.send(await house.topic())

    async def is_seen() -> bool:
        await house.instance.heartbeats.send_now()
        producers = await house.admin.clients.producers(house.broker, "admins")
        clients = producers.connection_set if producers is not None else []
        return house.instance.client_id in {client.client_id for client in clients}

    await eventually(is_seen)
    assert await house.admin.clients.producers(house.broker, "nobody") is None
    everyone = (await house.admin.clients.all_producers(house.broker)).data
    assert house.instance.client_id in {client.client_id for client in everyone["admins"]}


# offsets and resets


async def test_offsets_are_read_and_committed(house: House) -> None:
    topic, group = await house.topic(), await house.group()
    offsets, queue = house.admin.offsets, MessageQueue(topic, BROKER_NAME, 0)
    assert await offsets.earliest_store_time(house.broker, topic, 0) is None
    begun_ms = int(time.time() * 1000) - 60_000
    await house.send(topic, 4)
    assert await offsets.max(house.broker, topic, 0) == 4
    assert await offsets.min(house.broker, topic, 0) == 0
    assert await offsets.search(house.broker, topic, 0, begun_ms) == 0
    # The 4 line names the last message where all are older.
    behind_all = 3 if house.kind == OLD else 4
    assert await offsets.search(house.broker, topic, 0, begun_ms + 3_600_000) == behind_all
    earliest_ms = await offsets.earliest_store_time(house.broker, topic, 0)
    assert earliest_ms is not None
    assert earliest_ms > begun_ms

    # The 4 line says 0 of a queue that still has its first message.
    none = 0 if house.kind == OLD else None
    assert await offsets.committed(house.broker, group, topic, 0, zero_if_not_found=False) == none
    await offsets.commit(house.broker, group, topic, 0, 3)
    assert await offsets.committed(house.broker, group, topic, 0) == 3
    stats = await offsets.consume_stats(house.broker, group)
    assert (stats.queues[queue].broker_offset, stats.queues[queue].consumer_offset) == (4, 3)
    assert (await offsets.all_committed(house.broker))[topic, group][0] == 3
    if house.kind == OLD:
        await not_supported(offsets.topics_of_group(house.broker, group), house)
    else:
        assert await offsets.topics_of_group(house.broker, group) == [topic]
    spans = await offsets.time_spans(house.broker, group, topic)
    assert spans[queue].min_time_stamp == earliest_ms
    assert spans[queue].delay_time >= 0
    of_broker = await house.admin.brokers.consume_stats(house.broker)
    assert of_broker.groups[group][0].queues[queue].consumer_offset == 3


async def test_a_group_is_moved_by_time_to_the_end_and_one_queue_alone(house: House) -> None:
    topic, group = await house.topic(), await house.group()
    offsets, resets, queue = house.admin.offsets, house.admin.resets, MessageQueue(topic, BROKER_NAME, 0)
    await house.send(topic, 4)
    for queue_id in range(QUEUE_COUNT):
        await offsets.commit(house.broker, group, topic, queue_id, 2 if queue_id == 0 else 0)
    if house.kind == OLD:
        # It leaves resets to members; there is none, and one queue alone would be all of them.
        with pytest.raises(BrokerRefused) as refused:
            await resets.by_time(house.broker, group, topic, 0)
        assert refused.value.code == ResponseCode.CONSUMER_NOT_ONLINE
        await not_supported(resets.queue_to(house.broker, group, topic, 0, 1), house)
        assert await offsets.committed(house.broker, group, topic, 0) == 2
    else:
        assert (await resets.by_time(house.broker, group, topic, 0))[queue] == 0
        assert await offsets.committed(house.broker, group, topic, 0) == 0
        assert await resets.queue_to(house.broker, group, topic, 0, 1) == 1
        assert await offsets.committed(house.broker, group, topic, 0) == 1
        assert (await resets.skip_accumulated(house.broker, group, topic))[queue] == 4
        assert await offsets.committed(house.broker, group, topic, 0) == 4
        with pytest.raises(BrokerRefused):
            await resets.queue_to(house.broker, group, topic, 0, 99)


async def test_a_group_without_members_is_moved_by_commits(house: House) -> None:
    topic, group = await house.topic(), await house.group()
    await house.send(topic, 4)
    moved = await house.admin.resets.commit_by_time(house.broker, group, topic, -1)
    assert moved[MessageQueue(topic, BROKER_NAME, 0)] == 4
    assert await house.admin.offsets.committed(house.broker, group, topic, 0) == 4
    await house.admin.resets.commit_by_time(house.broker, group, topic, 0)
    assert await house.admin.offsets.committed(house.broker, group, topic, 0) == 0


async def test_progress_is_copied_and_corrections_are_told(house: House) -> None:
    topic, source, destination = await house.topic(), await house.group(), await house.group()
    await house.send(topic, 4)
    await house.admin.offsets.commit(house.broker, source, topic, 0, 3)
    await house.admin.resets.clone(house.broker, source, destination, topic, although_not_subscribed=True)
    assert await house.admin.offsets.committed(house.broker, destination, topic, 0) == 3
    call = house.admin.resets.corrections(house.broker, destination, topic)
    if house.kind == OURS:
        await not_supported(call, house)
    else:
        assert set(await call) <= set(range(QUEUE_COUNT))


# messages


async def test_a_message_is_found_by_each_of_its_names_and_its_place(house: House) -> None:
    topic, messages = await house.topic(), house.admin.messages
    (sent,) = await house.send(topic, tags="a", keys=["k1", "k2"])
    await house.send(topic, 2)
    found = await messages.view(house.broker, sent.offset_message_id, topic)
    assert found is not None
    assert (found.body, found.tags, found.keys) == (b"body 0", "a", ["k1", "k2"])

    async def by_key() -> bool:
        return len(await messages.by_key(house.broker, topic, "k2")) == 1

    await eventually(by_key)
    assert await messages.by_key(house.broker, topic, "k3") == []
    (unique,) = await messages.by_unique_key(house.broker, topic, sent.message_id)
    assert unique.offset_message_id == sent.offset_message_id
    assert await messages.by_key(house.broker, topic, "k2", end_ms=1) == []

    page = await messages.pull(house.broker, topic, 0, 1)
    assert [message.queue_offset for message in page.messages] == [1, 2]
    assert (page.next_offset, page.min_offset, page.max_offset) == (3, 0, 3)
    beyond = await messages.pull(house.broker, topic, 0, 99)
    assert (beyond.messages, beyond.next_offset) == ([], 3)
    entries = await messages.queue_entries(house.broker, topic, 0, 0)
    assert (len(entries.queue_data), entries.max_queue_index) == (3, 3)


async def test_a_trace_is_read_as_clients_write_it(house: House) -> None:
    topic = await house.topic("RMQ_TRACES")
    (sent,) = await house.send(topic)
    fields = [
        *("1700000000000", "DefaultRegion", "admins", "orders", sent.message_id, "a", "k1", "127.0.0.1:10911"),
        *("5", "3", "0", sent.offset_message_id, "true", "127.0.0.1"),
    ]
    body = "\x01".join(["Pub", *fields]) + "\x02no trace\x02"
    await house.producer.send(topic, body.encode(), keys=[sent.message_id])

    async def traced() -> bool:
        return bool(await house.admin.messages.trace(house.broker, sent.message_id, trace_topic=topic))

    await eventually(traced)
    (record,) = await house.admin.messages.trace(house.broker, sent.message_id, trace_topic=topic)
    assert (record.kind, record.topic, record.cost_ms, record.is_success) == ("Pub", "orders", 3, True)


async def test_a_transaction_that_is_none_is_not_asked_about(house: House) -> None:
    (sent,) = await house.send(await house.topic())
    with pytest.raises(BrokerRefused, match="RESUME_CHECK_HALF_MESSAGE"):
        await house.admin.messages.resume_check(house.broker, sent.offset_message_id[:-16] + "7FFFFFFFFFFFFFF0")


# many at once


async def test_what_is_asked_of_many_says_who_did_not_answer(house: House) -> None:
    partial = await ask_each([house.broker, "127.0.0.1:1"], house.admin.groups.table)
    assert "TOOLS_CONSUMER" in partial.answers[house.broker].subscription_group_table
    assert isinstance(partial.errors["127.0.0.1:1"], NotConnected)


async def test_only_our_broker_is_watched(house: House) -> None:
    assert await house.admin.our_broker.is_at(house.broker) == (house.kind == OURS)
    if house.kind != OURS:
        await not_supported(house.admin.our_broker.watch(house.broker), house)
        return
    _, body = await house.admin.our_broker.watch(house.broker)
    assert version_name(body.version)
    assert retry_topic("x") not in body.gone_topics
