"""Our codecs against bytes of a real Apache RocketMQ (tests/golden/README.md says how they were captured)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
import pytest

from remoting.wire.batch import decode_batch, encode_batch
from remoting.wire.bodies.consume_stats import read_consume_stats
from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.groups import ConsumerConnection, ConsumerIds
from remoting.wire.bodies.heartbeat import read_heartbeat
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.route import ClusterInfo, TopicList, TopicRouteData
from remoting.wire.bodies.running_info import read_running_info
from remoting.wire.codes import RequestCode, ResponseCode, SerializeType
from remoting.wire.command import Command
from remoting.wire.compression import decompress
from remoting.wire.frames import FrameReader, encode_frame
from remoting.wire.headers import groups, offsets, pull, routes, send
from remoting.wire.headers.typed import Header, read_header, write_header
from remoting.wire.properties import decode_properties
from remoting.wire.stored_message import decode_message, decode_messages, encode_message

GOLDEN = Path(__file__).parents[2] / "golden"
CRC_PROPERTY_BYTES = 20


class Exchange(NamedTuple):
    client: str
    shows: str
    asked_by: str
    request: bytes
    response: bytes | None

    @property
    def asked(self) -> Command:
        return one_command(self.request)

    @property
    def answered(self) -> Command:
        assert self.response is not None
        return one_command(self.response)


def one_command(frame: bytes) -> Command:
    commands = FrameReader().feed(frame)
    assert len(commands) == 1
    return commands[0]


def load_exchanges() -> list[Exchange]:
    return [
        Exchange(
            path.parent.name,
            entry["shows"],
            entry["asked_by"],
            bytes.fromhex(entry["request"]),
            bytes.fromhex(entry["response"]) if entry["response"] else None,
        )
        for path in sorted(GOLDEN.glob("frames/*/*.json"))
        for entry in json.loads(path.read_text())
    ]


EXCHANGES = load_exchanges()
# By what each shows.
FRAMES = [
    (f"{exchange.client}: {word} of {exchange.shows[:60]}", frame)
    for exchange in EXCHANGES
    for word, frame in (("request", exchange.request), ("response", exchange.response))
    if frame
]
RECORDS = [
    pytest.param(bytes.fromhex(entry["record"]), entry, id=f"{entry['written_by']} {entry['shows'][:60]}")
    for entry in json.loads((GOLDEN / "stored_messages.json").read_text())
]
REQUEST_HEADERS: dict[int, type[Header]] = {
    RequestCode.SEND_MESSAGE: send.SendMessageHeader,
    RequestCode.SEND_MESSAGE_V2: send.SendMessageHeaderV2,
    RequestCode.SEND_BATCH_MESSAGE: send.SendMessageHeaderV2,
    RequestCode.PULL_MESSAGE: pull.PullMessageHeader,
    RequestCode.QUERY_CONSUMER_OFFSET: offsets.QueryConsumerOffsetHeader,
    RequestCode.UPDATE_CONSUMER_OFFSET: offsets.UpdateConsumerOffsetHeader,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: offsets.SearchOffsetHeader,
    RequestCode.GET_MAX_OFFSET: offsets.QueueHeader,
    RequestCode.GET_MIN_OFFSET: offsets.QueueHeader,
    RequestCode.UNREGISTER_CLIENT: groups.UnregisterClientHeader,
    RequestCode.CONSUMER_SEND_MSG_BACK: groups.SendMessageBackHeader,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: groups.ConsumerGroupHeader,
    RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: groups.ConsumerGroupHeader,
    RequestCode.GET_CONSUMER_CONNECTION_LIST: groups.ConsumerGroupHeader,
    RequestCode.GET_CONSUME_STATS: groups.GetConsumeStatsHeader,
    RequestCode.GET_CONSUMER_RUNNING_INFO: groups.GetConsumerRunningInfoHeader,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: routes.GetRouteHeader,
    RequestCode.GET_TOPIC_CONFIG: routes.TopicHeader,
}
RESPONSE_HEADERS: dict[int, type[Header]] = {
    RequestCode.SEND_MESSAGE: send.SendMessageResponseHeader,
    RequestCode.SEND_MESSAGE_V2: send.SendMessageResponseHeader,
    RequestCode.SEND_BATCH_MESSAGE: send.SendMessageResponseHeader,
    RequestCode.PULL_MESSAGE: pull.PullMessageResponseHeader,
    RequestCode.QUERY_CONSUMER_OFFSET: offsets.OffsetResponseHeader,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: offsets.OffsetResponseHeader,
    RequestCode.GET_MAX_OFFSET: offsets.OffsetResponseHeader,
    RequestCode.GET_MIN_OFFSET: offsets.OffsetResponseHeader,
}
# Fields that any request may carry and that we have no use for; librocketmq signs with empty keys.
ANY_REQUEST_MAY_CARRY = {"lo", "ns", "nsd", "bname", "Signature", "AccessKey", "OnsChannel"}
PULLED = {ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY, ResponseCode.PULL_OFFSET_MOVED}


def answers(code: RequestCode) -> list[Any]:
    """Successful exchanges of one request code."""
    return [
        pytest.param(exchange, id=f"{exchange.client}: {exchange.shows[:70]}")
        for exchange in EXCHANGES
        if exchange.asked.code == code and exchange.response and exchange.answered.code == ResponseCode.SUCCESS
    ]


# Frames


def test_every_request_code_of_the_first_loop_is_captured() -> None:
    codes = {exchange.asked.code for exchange in EXCHANGES}
    assert codes >= set(REQUEST_HEADERS) | {RequestCode.HEART_BEAT, RequestCode.GET_BROKER_CLUSTER_INFO}
    assert codes >= {RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER}


def test_every_frame_reads_the_same_whole_or_cut_anywhere() -> None:
    for shown, frame in FRAMES:
        whole = one_command(frame)
        for cut in {1, 3, 4, 7, 8, len(frame) // 2, len(frame) - 1}:
            reader = FrameReader()
            assert reader.feed(frame[:cut]) == [], shown
            assert reader.feed(frame[cut:]) == [whole], shown


def test_every_frame_written_again_says_the_same() -> None:
    for shown, frame in FRAMES:
        command = one_command(frame)
        again = encode_frame(command)
        if command.serialize_type is SerializeType.ROCKETMQ:
            assert again == frame, shown
        else:
            assert one_command(again) == command, shown


def test_every_answer_carries_the_opaque_and_the_header_form_of_its_request() -> None:
    for exchange in EXCHANGES:
        if exchange.response is None:
            continue
        asked, answered = exchange.asked, exchange.answered
        assert answered.is_response, exchange.shows
        assert not asked.is_response, exchange.shows
        assert answered.opaque == asked.opaque, exchange.shows
        assert answered.serialize_type is asked.serialize_type, exchange.shows


# Typed headers


@pytest.mark.parametrize(
    "exchange",
    [
        pytest.param(each, id=f"{each.client}: {each.shows[:70]}")
        for each in EXCHANGES
        if each.asked.code in REQUEST_HEADERS
        and not (each.response and each.answered.code == ResponseCode.SYSTEM_ERROR)
    ],
)
def test_a_request_header_is_understood_and_written_as_it_came(exchange: Exchange) -> None:
    header_type = REQUEST_HEADERS[exchange.asked.code]
    fields = exchange.asked.ext_fields
    written = write_header(read_header(header_type, fields))
    known = {field.encode_name for field in msgspec.structs.fields(header_type)}
    assert fields.keys() & known <= written.keys()
    for name in fields.keys() & known:
        # librocketmq writes a false as 0.
        assert written[name] == fields[name] or (written[name], fields[name]) == ("false", "0"), name
    assert fields.keys() - known <= ANY_REQUEST_MAY_CARRY


@pytest.mark.parametrize(
    "exchange",
    [
        pytest.param(each, id=f"{each.client}: {each.shows[:70]}")
        for each in EXCHANGES
        if each.asked.code in RESPONSE_HEADERS
        and each.response
        and each.answered.code in {ResponseCode.SUCCESS, *PULLED}
    ],
)
def test_a_response_header_has_every_field_that_we_require(exchange: Exchange) -> None:
    header = read_header(RESPONSE_HEADERS[exchange.asked.code], exchange.answered.ext_fields)
    written = write_header(header)
    assert written.items() <= exchange.answered.ext_fields.items()


# Bodies


@pytest.mark.parametrize("exchange", answers(RequestCode.HEART_BEAT))
def test_a_heartbeat_names_its_client_and_groups(exchange: Exchange) -> None:
    heartbeat = read_heartbeat(exchange.asked.body)
    assert heartbeat.client_id
    groups_named = [each.group_name for each in (*heartbeat.consumer_data_set, *heartbeat.producer_data_set)]
    assert groups_named
    for consumer in heartbeat.consumer_data_set:
        assert consumer.consume_type == "CONSUME_PASSIVELY"
        assert consumer.message_model == "CLUSTERING"
        topics = {each.topic for each in consumer.subscription_data_set}
        assert topics == {"golden", f"%RETRY%{consumer.group_name}"}


@pytest.mark.parametrize("exchange", answers(RequestCode.GET_ROUTEINFO_BY_TOPIC))
def test_a_route_names_the_master_and_its_queues(exchange: Exchange) -> None:
    route = read_body(TopicRouteData, exchange.answered.body)
    assert [queue.broker_name for queue in route.queue_datas] == ["broker-a"]
    broker = route.broker("broker-a")
    assert broker is not None
    assert broker.master_addr is not None
    assert broker.master_addr.startswith("127.0.0.2:")


@pytest.mark.parametrize("exchange", answers(RequestCode.GET_BROKER_CLUSTER_INFO))
def test_a_cluster_names_its_brokers(exchange: Exchange) -> None:
    info = read_body(ClusterInfo, exchange.answered.body)
    assert info.cluster_addr_table == {"DefaultCluster": ["broker-a"]}
    assert info.broker_addr_table["broker-a"].master_addr


@pytest.mark.parametrize("exchange", answers(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER))
def test_the_topic_list_has_what_was_sent_to(exchange: Exchange) -> None:
    assert "golden" in read_body(TopicList, exchange.answered.body).topic_list


@pytest.mark.parametrize("exchange", answers(RequestCode.GET_CONSUMER_LIST_BY_GROUP))
def test_the_consumer_list_holds_client_ids(exchange: Exchange) -> None:
    assert all(read_body(ConsumerIds, exchange.answered.body).consumer_id_list)


@pytest.mark.parametrize("exchange", answers(RequestCode.GET_CONSUMER_CONNECTION_LIST))
def test_the_connection_list_shows_members_and_subscriptions(exchange: Exchange) -> None:
    connection = read_body(ConsumerConnection, exchange.answered.body)
    assert {each.language for each in connection.connection_set} == {"JAVA"}
    assert set(connection.subscription_table["golden"].tags_set) == {"TagA", "TagB"}


@pytest.mark.parametrize("exchange", answers(RequestCode.GET_CONSUME_STATS))
def test_consume_stats_show_every_queue(exchange: Exchange) -> None:
    stats = read_consume_stats(exchange.answered.body)
    assert MessageQueue("golden", "broker-a", 0) in stats.queues
    assert all(each.consumer_offset <= each.broker_offset for each in stats.queues.values())


@pytest.mark.parametrize("exchange", answers(RequestCode.GET_CONSUMER_RUNNING_INFO))
def test_running_info_shows_the_queues_of_a_member(exchange: Exchange) -> None:
    info = read_running_info(exchange.answered.body)
    assert any(queue.topic == "golden" for queue in info.queues)
    assert {each.topic for each in info.subscriptions} == {"golden", "%RETRY%golden-group"}


@pytest.mark.parametrize("exchange", answers(RequestCode.PULL_MESSAGE))
def test_a_pull_answer_is_stored_messages_one_after_the_other(exchange: Exchange) -> None:
    messages = decode_messages(exchange.answered.body)
    assert messages
    assert b"".join(encode_message(message) for message in messages) == exchange.answered.body


@pytest.mark.parametrize("exchange", answers(RequestCode.SEND_BATCH_MESSAGE))
def test_a_batch_splits_and_is_written_as_java_5_does(exchange: Exchange) -> None:
    body = exchange.asked.body
    entries = decode_batch(body)
    assert [entry.body for entry in entries] == [b"body-0", b"body-1", b"body-2"]
    properties = [decode_properties(entry.properties_text) for entry in entries]
    assert [each["KEYS"] for each in properties] == ["batch0", "batch1", "batch2"]
    again = encode_batch((entry.flag, entry.body, each) for entry, each in zip(entries, properties, strict=True))
    if "5.4.0" in exchange.client:
        assert again == body
    else:  # 4.9 leaves the last separator out
        assert [decode_properties(entry.properties_text) for entry in decode_batch(again)] == properties


# Stored messages


@pytest.mark.parametrize(("record", "entry"), RECORDS)
def test_a_stored_message_is_written_back_byte_for_byte(record: bytes, entry: dict[str, Any]) -> None:
    message = decode_message(record)
    assert message.total_bytes == len(record)
    assert entry["shows"].startswith(f"{message.topic} sysFlag={message.sys_flag}")
    assert encode_message(message) == record


@pytest.mark.parametrize(
    "record", [pytest.param(each.values[0], id=each.id) for each in RECORDS if "__CRC32#" in each.values[1]["shows"]]
)
def test_the_crc_property_covers_all_bytes_before_it(record: bytes) -> None:
    name, _, value = record[-CRC_PROPERTY_BYTES:].partition(b"\x01")
    assert name == b"__CRC32#"
    # Ten digits, the least significant first.
    assert int(value.rstrip(b"\x02")[::-1]) == crc32(record[:-CRC_PROPERTY_BYTES]) & 0x7FFFFFFF


@pytest.mark.parametrize(
    "record", [pytest.param(each.values[0], id=each.id) for each in RECORDS if "sysFlag=769" in each.values[1]["shows"]]
)
def test_a_compressed_body_is_read_by_its_flags(record: bytes) -> None:
    message = decode_message(record)
    body = decompress(message.body, message.sys_flag)
    assert body.startswith(b"compressed0")
    assert len(body) == 6000
