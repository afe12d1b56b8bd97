from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import pytest

from remoting.client.admin import Admin
from remoting.client.admin.groups import GroupChange
from remoting.client.errors import BrokerRefused
from remoting.connection import Connection
from remoting.wire.bodies.consume_stats import ConsumeStats, QueueProgress, write_committed_offsets, write_consume_stats
from remoting.wire.bodies.document import read_body, write_body
from remoting.wire.bodies.groups import ConsumerConnection, ConsumerIds, GroupList, SubscriptionGroupConfig
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.route import BrokerData, ClusterInfo
from remoting.wire.bodies.running_info import ConsumerRunningInfo, write_running_info
from remoting.wire.bodies.scheduler import Agenda, AgendaEntry
from remoting.wire.bodies.topics import TopicConfig, TopicOffset, TopicTable, write_topic_stats
from remoting.wire.bodies.watch import WatchBody
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import BodyError, HeaderError
from tests.support.answering_server import AnsweringServer, route_to

QUEUE = MessageQueue("orders", "a", 3)


def asked(server: AnsweringServer) -> dict[str, str]:
    """The fields of the only question."""
    (request,) = server.asked
    return request.ext_fields


async def test_the_cluster_and_a_route_are_requested_from_a_name_server(server: AnsweringServer, admin: Admin) -> None:
    cluster = ClusterInfo(broker_addr_table={"a": BrokerData(broker_addrs={"0": "h:1"}, broker_name="a")})
    server.succeed(RequestCode.GET_BROKER_CLUSTER_INFO, write_body(cluster))
    assert await admin.cluster.info(server.address) == cluster
    server.serve_routes({"orders": route_to(("a", "h:1"))})
    assert (await admin.cluster.route(server.address, "orders")).broker_datas[0].master_addr == "h:1"
    with pytest.raises(BrokerRefused, match="topic 'missing'"):
        await admin.cluster.route(server.address, "missing")


async def test_a_paged_table_is_read_whole(server: AnsweringServer, admin: Admin) -> None:
    names = [f"t{number}" for number in range(7)]

    def page(_: Connection, request: Command) -> Command:
        first = int(request.ext_fields.get("topicSeq", "0"))
        part = {name: {"topicName": name} for name in names[first : first + 3]}
        body = json.dumps({"dataVersion": {"counter": 1}, "topicConfigTable": part}).encode()
        return response(request, 0, ext_fields={"totalTopicNum": "7"}, body=body)

    server.answers[RequestCode.GET_ALL_TOPIC_CONFIG] = page
    table = await admin.topics.table(server.address)
    assert list(table.topic_config_table) == names
    assert table.data_version.counter == 1
    assert len(server.asked) == 3
    assert server.asked[0].ext_fields == {}


async def test_the_group_table_is_read(server: AnsweringServer, admin: Admin) -> None:
    body = (
        b'{"dataVersion":{"counter":1},"forbiddenTable":{"g":{"T":4}},"subscriptionGroupTable":{"g":{"groupName":"g"}}}'
    )
    server.succeed(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, body)
    table = await admin.groups.table(server.address)
    assert table.subscription_group_table == {"g": SubscriptionGroupConfig(group_name="g")}
    assert table.forbidden_table == {"g": {"T": 4}}


async def test_a_topic_is_created_with_the_attributes_as_the_wire_has_them(
    server: AnsweringServer, admin: Admin
) -> None:
    attributes = {"+message.type": "FIFO", "-cleanup.policy": ""}
    config = TopicConfig(topic_name="orders", read_queue_nums=2, write_queue_nums=3, perm=4, attributes=attributes)
    await admin.topics.create(server.address, config)
    assert asked(server) == {
        "topic": "orders",
        "defaultTopic": "TBW102",
        "readQueueNums": "2",
        "writeQueueNums": "3",
        "perm": "4",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
        "attributes": "+message.type=FIFO,-cleanup.policy",
    }


async def test_the_settings_of_a_topic_are_read_or_known_to_be_none(server: AnsweringServer, admin: Admin) -> None:
    config = TopicConfig(topic_name="orders", read_queue_nums=3)
    server.succeed(RequestCode.GET_TOPIC_CONFIG, write_body(config))
    assert await admin.topics.config(server.address, "orders") == config
    server.refuse(RequestCode.GET_TOPIC_CONFIG, ResponseCode.TOPIC_NOT_EXIST, "No topic in this broker.")
    assert await admin.topics.config(server.address, "orders") is None
    server.refuse(RequestCode.GET_TOPIC_CONFIG, ResponseCode.NO_PERMISSION, "no")
    with pytest.raises(BrokerRefused, match="topic 'orders'"):
        await admin.topics.config(server.address, "orders")


async def test_a_server_that_has_no_request_for_one_topic_is_requested_its_table(
    server: AnsweringServer, admin: Admin
) -> None:
    config = TopicConfig(topic_name="orders", read_queue_nums=3)
    server.refuse(RequestCode.GET_TOPIC_CONFIG, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "not supported")
    server.succeed(RequestCode.GET_ALL_TOPIC_CONFIG, write_body(TopicTable(topic_config_table={"orders": config})))
    assert await admin.topics.config(server.address, "orders") == config
    assert await admin.topics.config(server.address, "missing") is None


async def test_a_topic_is_deleted_in_a_broker_and_in_a_name_server(server: AnsweringServer, admin: Admin) -> None:
    await admin.topics.delete(server.address, "orders")
    await admin.cluster.delete_route(server.address, "orders", "c1")
    broker, name_server = server.asked
    assert (broker.code, broker.ext_fields) == (RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "orders"})
    assert name_server.code == RequestCode.DELETE_TOPIC_IN_NAMESRV
    assert name_server.ext_fields == {"topic": "orders", "clusterName": "c1"}


async def test_the_groups_of_a_topic_are_read(server: AnsweringServer, admin: Admin) -> None:
    server.succeed(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, write_body(GroupList(group_list=["billing"])))
    assert await admin.topics.groups(server.address, "orders") == ["billing"]
    assert asked(server) == {"topic": "orders"}


async def test_a_group_is_created(server: AnsweringServer, admin: Admin) -> None:
    group = SubscriptionGroupConfig(group_name="billing", retry_max_times=3)
    await admin.groups.create(server.address, group)
    assert read_body(SubscriptionGroupConfig, server.asked[0].body) == group


async def test_topic_stats_are_read(server: AnsweringServer, admin: Admin) -> None:
    offset = TopicOffset(max_offset=5, min_offset=1)
    server.succeed(RequestCode.GET_TOPIC_STATS_INFO, write_topic_stats({QUEUE: offset}))
    assert await admin.topics.stats(server.address, "orders") == {QUEUE: offset}


async def test_a_group_without_connected_consumers_has_no_members(server: AnsweringServer, admin: Admin) -> None:
    server.refuse(RequestCode.GET_CONSUMER_CONNECTION_LIST, ResponseCode.CONSUMER_NOT_ONLINE, "not online")
    server.refuse(RequestCode.GET_CONSUMER_LIST_BY_GROUP, 1, "no consumer for this group, billing")
    assert await admin.clients.consumers(server.address, "billing") is None
    assert await admin.clients.consumer_ids(server.address, "billing") == []


async def test_members_are_read(server: AnsweringServer, admin: Admin) -> None:
    server.succeed(
        RequestCode.GET_CONSUMER_CONNECTION_LIST,
        write_body(ConsumerConnection(consume_type="CONSUME_PASSIVELY")),
    )
    server.succeed(RequestCode.GET_CONSUMER_LIST_BY_GROUP, write_body(ConsumerIds(consumer_id_list=["b", "a"])))
    members = await admin.clients.consumers(server.address, "billing")
    assert members is not None
    assert members.consume_type == "CONSUME_PASSIVELY"
    assert await admin.clients.consumer_ids(server.address, "billing") == ["b", "a"]


async def test_progress_is_read(server: AnsweringServer, admin: Admin) -> None:
    stats = ConsumeStats(queues={QUEUE: QueueProgress(broker_offset=9, consumer_offset=4)})
    server.succeed(RequestCode.GET_CONSUME_STATS, write_consume_stats(stats))
    assert await admin.offsets.consume_stats(server.address, "billing", "orders") == stats
    assert asked(server) == {"consumerGroup": "billing", "topic": "orders"}
    offsets = {("orders", "billing"): {0: 4}}
    server.succeed(RequestCode.GET_ALL_CONSUMER_OFFSET, write_committed_offsets(offsets))
    assert await admin.offsets.all_committed(server.address) == offsets


async def test_running_info_is_requested_of_one_client(server: AnsweringServer, admin: Admin) -> None:
    info = ConsumerRunningInfo(properties={"a": "b"})
    server.succeed(RequestCode.GET_CONSUMER_RUNNING_INFO, write_running_info(info))
    assert await admin.clients.running_info(server.address, "billing", "me") == info
    assert asked(server) == {"consumerGroup": "billing", "clientId": "me", "jstackEnable": "false"}


async def test_offsets_of_a_queue_are_read_and_written(server: AnsweringServer, admin: Admin) -> None:
    for code in (RequestCode.GET_MAX_OFFSET, RequestCode.GET_MIN_OFFSET, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP):
        server.succeed(code, offset=int(code))
    server.succeed(RequestCode.QUERY_CONSUMER_OFFSET, offset=4)
    assert await admin.offsets.max(server.address, "orders", 3) == 30
    assert await admin.offsets.min(server.address, "orders", 3) == 31
    assert await admin.offsets.search(server.address, "orders", 3, 1_700_000_000_000) == 29
    assert await admin.offsets.committed(server.address, "billing", "orders", 3) == 4
    await admin.offsets.commit(server.address, "billing", "orders", 3, 5)
    assert server.asked[2].ext_fields == {"topic": "orders", "queueId": "3", "timestamp": "1700000000000"}
    assert server.asked[4].ext_fields == {
        "consumerGroup": "billing",
        "topic": "orders",
        "queueId": "3",
        "commitOffset": "5",
    }


async def test_an_offset_that_was_never_committed_is_none(server: AnsweringServer, admin: Admin) -> None:
    server.refuse(RequestCode.QUERY_CONSUMER_OFFSET, ResponseCode.QUERY_NOT_FOUND)
    assert await admin.offsets.committed(server.address, "billing", "orders", 3) is None


async def test_a_watch_is_answered_with_what_changed(server: AnsweringServer, admin: Admin) -> None:
    body = WatchBody(now_ms=1, cluster="c", broker_name="a", broker_addr="h:1", version=479)
    server.succeed(RequestCode.WATCH, write_body(body), boot="b1", revision=7, isSnapshot="true")
    header, watched = await admin.our_broker.watch(server.address, "b0", 5, 100)
    assert (header.boot, header.revision, header.is_snapshot) == ("b1", 7, True)
    assert watched == body
    assert asked(server) == {"boot": "b0", "since": "5", "waitMs": "100"}


async def test_the_scheduler_asks_for_its_lease_and_steps(server: AnsweringServer, admin: Admin) -> None:
    entry = AgendaEntry(kind="delay", key="3", next_due_ms=5, waiting_count=1)
    server.succeed(
        RequestCode.SCHEDULER_LEASE,
        write_body(Agenda(entries=[entry])),
        granted="true",
        epoch=2,
        holder="me",
        brokerNowMs=9,
    )
    lease, agenda = await admin.our_broker.scheduler_lease(server.address, "me", 2000, wait_ms=10)
    assert (lease.granted, lease.epoch, lease.broker_now_ms, agenda.entries) == (True, 2, 9, [entry])
    server.succeed(RequestCode.SCHEDULER_STEP, delivered=4, lateMs=12)
    step = await admin.our_broker.scheduler_step(server.address, 2, "delay", "3", 1000)
    assert (step.delivered, step.late_ms) == (4, 12)
    server.refuse(RequestCode.SCHEDULER_STEP, ResponseCode.SCHEDULER_EPOCH_STALE)
    with pytest.raises(BrokerRefused, match="SCHEDULER_EPOCH_STALE"):
        await admin.our_broker.scheduler_step(server.address, 1, "delay", "3", 1000)


Call = Callable[[Admin, str], Awaitable[object]]
CALLS: dict[str, Call] = {
    "cluster_info": lambda admin, address: admin.cluster.info(address),
    "route": lambda admin, address: admin.cluster.route(address, "t"),
    "topics": lambda admin, address: admin.cluster.topics(address),
    "topics_of": lambda admin, address: admin.cluster.topics_of(address, "c"),
    "system_topics": lambda admin, address: admin.cluster.system_topics(address),
    "wipe_write_permission": lambda admin, address: admin.cluster.wipe_write_permission(address, "a"),
    "add_write_permission": lambda admin, address: admin.cluster.add_write_permission(address, "a"),
    "values": lambda admin, address: admin.name_server.values(address, "n"),
    "runtime_info": lambda admin, address: admin.brokers.runtime_info(address),
    "broker_stats": lambda admin, address: admin.brokers.stats(address, "n", "k"),
    "broker_consume_stats": lambda admin, address: admin.brokers.consume_stats(address),
    "system_topics_of_broker": lambda admin, address: admin.brokers.system_topics(address),
    "group_config": lambda admin, address: admin.groups.config(address, "g"),
    "change_group": lambda admin, address: admin.groups.change(address, "g", GroupChange(consume_enable=True)),
    "topic_table": lambda admin, address: admin.topics.table(address),
    "group_table": lambda admin, address: admin.groups.table(address),
    "consumer_connection": lambda admin, address: admin.clients.consumers(address, "g"),
    "consumer_ids": lambda admin, address: admin.clients.consumer_ids(address, "g"),
    "consume_stats": lambda admin, address: admin.offsets.consume_stats(address, "g"),
    "all_offsets": lambda admin, address: admin.offsets.all_committed(address),
    "topic_stats": lambda admin, address: admin.topics.stats(address, "t"),
    "running_info": lambda admin, address: admin.clients.running_info(address, "g", "c"),
    "max_offset": lambda admin, address: admin.offsets.max(address, "t", 0),
    "search_offset": lambda admin, address: admin.offsets.search(address, "t", 0, 0),
    "query_offset": lambda admin, address: admin.offsets.committed(address, "g", "t", 0),
    "watch": lambda admin, address: admin.our_broker.watch(address),
    "scheduler_lease": lambda admin, address: admin.our_broker.scheduler_lease(address, "d", 1),
    "scheduler_step": lambda admin, address: admin.our_broker.scheduler_step(address, 1, "delay", "1", 1),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.slow
async def test_every_refusal_names_address_request_code_and_words(
    server: AnsweringServer, admin: Admin, call: Call
) -> None:
    for code in RequestCode:
        server.refuse(code, ResponseCode.NO_PERMISSION, "log in first")
    with pytest.raises(BrokerRefused) as caught:
        await call(admin, server.address)
    text = str(caught.value)
    assert server.address in text
    assert "NO_PERMISSION (16): log in first" in text
    assert RequestCode(server.asked[0].code).name in text


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_every_answer_that_cannot_be_read_is_an_error_of_the_wire(
    server: AnsweringServer, admin: Admin, call: Call
) -> None:
    for code in RequestCode:
        server.succeed(code, b"<html>")
    with pytest.raises((BodyError, HeaderError)):
        await call(admin, server.address)
