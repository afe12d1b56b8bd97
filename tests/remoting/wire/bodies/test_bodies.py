"""The JSON bodies as Apache's servers write them, and as we do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from remoting.wire.bodies.consume_stats import (
    ConsumeStats,
    QueueProgress,
    read_committed_offsets,
    read_consume_stats,
    write_committed_offsets,
    write_consume_stats,
)
from remoting.wire.bodies.document import read_body, write_body
from remoting.wire.bodies.groups import ConsumerConnection, ConsumerIds, SubscriptionGroupConfig, SubscriptionGroupTable
from remoting.wire.bodies.message_queue import MessageQueue, queue_from_json, read_queue_map
from remoting.wire.bodies.route import ClusterInfo, TopicRouteData
from remoting.wire.bodies.running_info import (
    ConsumerRunningInfo,
    ConsumeStatus,
    ProcessQueueInfo,
    read_running_info,
    write_running_info,
)
from remoting.wire.bodies.topics import TopicConfig, TopicOffset, TopicTable, read_topic_stats, write_topic_stats
from remoting.wire.bodies.watch import WatchBody
from remoting.wire.errors import BodyError

QUEUE = MessageQueue("orders", "pyb-a", 0)
KEY = b'{"brokerName":"pyb-a","queueId":0,"topic":"orders"}'


def test_a_route_is_read_with_and_without_quotes_around_broker_ids() -> None:
    quoted = (
        b'{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.5:10911","1":"10.0.0.6:10911"},"brokerName":"pyb-a",'
        b'"cluster":"C1","enableActingMaster":false,"zoneName":null}],"filterServerTable":{},"orderTopicConf":null,'
        b'"queueDatas":[{"brokerName":"pyb-a","perm":6,"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":4}],'
        b'"topicQueueMappingByBroker":{}}'
    )
    bare = quoted.replace(b'"0":', b"0:").replace(b'"1":', b"1:")
    for body in (quoted, bare):
        route = read_body(TopicRouteData, body)
        assert route.broker_datas[0].master_addr == "10.0.0.5:10911"
        assert route.broker_datas[0].broker_addrs["1"] == "10.0.0.6:10911"
        assert (route.queue_datas[0].read_queue_nums, route.queue_datas[0].write_queue_nums) == (8, 4)
        assert route.order_topic_conf is None


def test_a_route_is_written_as_compact_standard_json() -> None:
    """Go splits it at commas and colons."""
    route = read_body(
        TopicRouteData,
        b'{"brokerDatas":[{"brokerAddrs":{0:"h:1"},"brokerName":"a"}],"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":1,"writeQueueNums":1}]}',
    )
    written = write_body(route)
    assert b'"brokerAddrs":{"0":"h:1"}' in written
    assert b" " not in written
    assert json.loads(written)


def test_the_cluster_is_read() -> None:
    cluster = read_body(
        ClusterInfo,
        b'{"brokerAddrTable":{"pyb-a":{"brokerAddrs":{0:"10.0.0.5:10911"},"brokerName":"pyb-a","cluster":"C1",'
        b'"enableActingMaster":false}},"clusterAddrTable":{"C1":["pyb-a"]}}',
    )
    assert cluster.broker_addr_table["pyb-a"].master_addr == "10.0.0.5:10911"
    assert cluster.cluster_addr_table == {"C1": ["pyb-a"]}


def test_consume_stats_are_read_and_written_in_fastjsons_form() -> None:
    java = (
        b'{"consumeTps":1.5,"offsetTable":{' + KEY + b':{"brokerOffset":10,"consumerOffset":4,'
        b'"lastTimestamp":1700000000000,"pullOffset":6}}}'
    )
    stats = read_consume_stats(java)
    progress = QueueProgress(broker_offset=10, consumer_offset=4, last_timestamp=1700000000000, pull_offset=6)
    assert stats == ConsumeStats(consume_tps=1.5, queues={QUEUE: progress})
    assert write_consume_stats(stats) == java


def test_consume_stats_of_4_9_lack_the_pull_offset_and_may_lack_the_rate() -> None:
    stats = read_consume_stats(b'{"consumeTps":null,"offsetTable":{' + KEY + b':{"brokerOffset":1}}}')
    assert stats.consume_tps == 0.0
    assert stats.queues[QUEUE].pull_offset is None
    assert read_consume_stats(b"{}") == ConsumeStats()


def test_committed_offsets_are_read_and_written() -> None:
    java = b'{"dataVersion":{"counter":1},"offsetTable":{"orders@g":{0:5,1:7},"%RETRY%g@g":{0:0}}}'
    offsets = read_committed_offsets(java)
    assert offsets == {("orders", "g"): {0: 5, 1: 7}, ("%RETRY%g", "g"): {0: 0}}
    assert read_committed_offsets(write_committed_offsets(offsets)) == offsets


def test_committed_offsets_without_a_group_are_refused() -> None:
    with pytest.raises(BodyError, match="orders"):
        read_committed_offsets(b'{"offsetTable":{"orders":{0:5}}}')


def test_topic_stats_are_read_and_written() -> None:
    java = (
        b'{"offsetTable":{' + KEY + b':{"lastUpdateTimestamp":1700000000000,"maxOffset":10,"minOffset":0}},'
        b'"topicPutTps":0.4}'
    )
    offset = TopicOffset(last_update_timestamp=1700000000000, max_offset=10, min_offset=0)
    assert read_topic_stats(java) == {QUEUE: offset}
    assert write_topic_stats({QUEUE: offset}, 0.4) == java


def test_running_info_is_read_as_java_writes_it() -> None:
    java = (
        b'{"jstack":"main","mqPopTable":{' + KEY.replace(b"0", b"1") + b':{"droped":false,"waitAckCount":0}},'
        b'"mqTable":{' + KEY + b':{"cachedMsgCount":2,"commitOffset":4,"droped":false,"locked":true}},'
        b'"properties":{"PROP_CONSUMEORDERLY":"false","PROP_THREADPOOL_CORE_SIZE":20},'
        b'"statusTable":{"orders":{"consumeFailedMsgs":1,"consumeFailedTPS":0.0,"consumeOKTPS":1.0,"consumeRT":2.0,'
        b'"pullRT":3.0,"pullTPS":1.0}},"subscriptionSet":[{"topic":"orders","subString":"*"}],"userConsumerInfo":{}}'
    )
    info = read_running_info(java)
    assert info.queues[QUEUE].cached_msg_count == 2
    assert info.queues[QUEUE].locked
    assert info.statuses["orders"].consume_ok_tps == 1.0
    assert info.properties["PROP_THREADPOOL_CORE_SIZE"] == "20"
    assert info.subscriptions[0].topic == "orders"
    assert info.jstack == "main"


def test_running_info_comes_back_as_it_was() -> None:
    info = ConsumerRunningInfo(
        properties={"a": "b"},
        queues={QUEUE: ProcessQueueInfo(commit_offset=5, cached_msg_size_in_mib=1)},
        statuses={"orders": ConsumeStatus(consume_rt=1.5)},
    )
    assert read_running_info(write_running_info(info)) == info


def test_running_info_of_a_cpp_client_without_queues_is_read() -> None:
    info = read_running_info(b'{"mqTable":},"jstack":"","properties":{"PROP_CLIENT_VERSION":"V3_1_8"}}')
    assert (info.queues, info.properties["PROP_CLIENT_VERSION"]) == ({}, "V3_1_8")


def test_a_key_that_is_a_reference_names_no_queue_and_is_dropped() -> None:
    """fastjson writes the same queue object in a second map so."""
    info = read_running_info(b'{"mqTable":{' + KEY + b':{"commitOffset":4},{"$ref":"$.mqPopTable.null"}:{}}}')
    assert list(info.queues) == [QUEUE]


def test_members_are_read() -> None:
    members = read_body(
        ConsumerConnection,
        b'{"connectionSet":[{"clientAddr":"10.0.0.9:51422","clientId":"c","language":"JAVA","version":479}],'
        b'"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY",'
        b'"messageModel":"CLUSTERING","subscriptionTable":{"orders":{"subString":"TagA||TagB","topic":"orders"}}}',
    )
    assert members.connection_set[0].client_addr == "10.0.0.9:51422"
    assert members.subscription_table["orders"].sub_string == "TagA||TagB"
    assert read_body(ConsumerIds, b'{"consumerIdList":["a","b"]}').consumer_id_list == ["a", "b"]


def test_topic_and_group_tables_are_read_and_unknown_parts_ignored() -> None:
    topics = read_body(
        TopicTable,
        b'{"dataVersion":{"counter":3,"stateVersion":0,"timestamp":1700000000000},"topicConfigTable":{"orders":'
        b'{"attributes":{"message.type":"NORMAL"},"order":false,"perm":6,"readQueueNums":8,'
        b'"topicFilterType":"SINGLE_TAG","topicName":"orders","topicSysFlag":0,"writeQueueNums":8}},'
        b'"topicQueueMappingDetailMap":{},"topicQueueMappingInfoMap":{"x":{0:1}}}',
    )
    assert topics.data_version.counter == 3
    assert topics.topic_config_table["orders"].attributes == {"message.type": "NORMAL"}
    groups = read_body(
        SubscriptionGroupTable,
        b'{"dataVersion":{"counter":1},"forbiddenTable":{"g1":{"T":4}},"subscriptionGroupTable":{"g1":'
        b'{"groupName":"g1","groupRetryPolicy":{"exponentialRetryPolicy":{"initial":5000},"type":"EXPONENTIAL"},'
        b'"retryMaxTimes":3}}}',
    )
    assert groups.subscription_group_table["g1"].retry_max_times == 3
    assert groups.forbidden_table == {"g1": {"T": 4}}


def test_a_group_is_written_with_javas_defaults() -> None:
    assert write_body(SubscriptionGroupConfig(group_name="g1")) == (
        b'{"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,'
        b'"consumeFromMinEnable":true,"consumeMessageOrderly":false,"consumeTimeoutMinute":15,"groupName":"g1",'
        b'"groupRetryPolicy":{"type":"CUSTOMIZED"},"groupSysFlag":0,"notifyConsumerIdsChangedEnable":true,'
        b'"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}'
    )


def test_topic_permissions_are_bits() -> None:
    assert TopicConfig(topic_name="T", perm=6).is_readable
    assert TopicConfig(topic_name="T", perm=2).is_writable
    assert not TopicConfig(topic_name="T", perm=4).is_writable
    assert not TopicConfig(topic_name="T", perm=3).is_readable


def test_queues_sort_as_javas_do_and_show_its_text() -> None:
    queues = [
        MessageQueue("b", "a", 0),
        MessageQueue("a", "b", 1),
        MessageQueue("a", "b", 0),
        MessageQueue("a", "a", 9),
    ]
    assert sorted(queues) == [queues[3], queues[2], queues[1], queues[0]]
    assert str(QUEUE) == "MessageQueue [topic=orders, brokerName=pyb-a, queueId=0]"


@pytest.mark.parametrize("value", [None, 5, {}, {"topic": "t"}, {"topic": "t", "brokerName": "b", "queueId": "x"}])
def test_a_value_that_is_no_queue_is_refused(value: Any) -> None:
    with pytest.raises(BodyError, match="not a message queue"):
        queue_from_json(value)


def test_no_map_is_an_empty_map() -> None:
    assert read_queue_map(None) == {}


@pytest.mark.parametrize("read", [read_consume_stats, read_committed_offsets, read_topic_stats, read_running_info])
@pytest.mark.parametrize(
    "body", [b"", b"[]", b"5", b"null", b'{"offsetTable":5,"mqTable":5}', b'{"offsetTable":[1],"mqTable":[1]}']
)
def test_a_body_that_is_something_else_is_a_body_error(read: Any, body: bytes) -> None:
    with pytest.raises(BodyError):
        read(body)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"events":5}', b"{}"])
def test_a_document_that_does_not_fit_is_refused_with_its_name(body: bytes) -> None:
    with pytest.raises(BodyError, match=r"WatchBody|JSON"):
        read_body(WatchBody, body)


@pytest.mark.parametrize(
    "body", [b'{"a":' * 10_000 + b"1" + b"}" * 10_000, b"[" * 10_000, b'{"topicConfigTable":null,' * 900]
)
def test_a_document_that_is_nested_too_deeply_is_no_document(body):
    with pytest.raises(BodyError):
        read_body(TopicTable, body)
