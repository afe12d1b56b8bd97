"""Every call of the admin client, answered by servers that lie, stop half-way, or answer something else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from remoting.client.admin import Admin
from remoting.client.admin.groups import GroupChange
from remoting.client.admin.table_pages import PAGES_MAX
from remoting.client.connections import Connections
from remoting.client.errors import ClientError, ConnectionLost, RequestTimedOut
from remoting.connection import Connection
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode
from remoting.wire.command import Command, response
from remoting.wire.errors import BodyError, WireError
from tests.remoting.client.admin.test_page import calls
from tests.support.answering_server import AnsweringServer

Call = Callable[[Admin, str], Awaitable[object]]
ID = "7F00000100002A9F0000000000000000"

CALLS: dict[str, Call] = {
    "cluster.info": lambda admin, at: admin.cluster.info(at),
    "cluster.route": lambda admin, at: admin.cluster.route(at, "t"),
    "cluster.delete_route": lambda admin, at: admin.cluster.delete_route(at, "t", "c"),
    "cluster.topics": lambda admin, at: admin.cluster.topics(at),
    "cluster.topics_of": lambda admin, at: admin.cluster.topics_of(at, "c"),
    "cluster.system_topics": lambda admin, at: admin.cluster.system_topics(at),
    "cluster.wipe_write_permission": lambda admin, at: admin.cluster.wipe_write_permission(at, "a"),
    "cluster.add_write_permission": lambda admin, at: admin.cluster.add_write_permission(at, "a"),
    "name_server.config": lambda admin, at: admin.name_server.config(at),
    "name_server.update_config": lambda admin, at: admin.name_server.update_config(at, {"a": "b"}),
    "name_server.values": lambda admin, at: admin.name_server.values(at, "n"),
    "name_server.value": lambda admin, at: admin.name_server.value(at, "n", "k"),
    "name_server.put_value": lambda admin, at: admin.name_server.put_value(at, "n", "k", "v"),
    "name_server.delete_value": lambda admin, at: admin.name_server.delete_value(at, "n", "k"),
    "brokers.runtime_info": lambda admin, at: admin.brokers.runtime_info(at),
    "brokers.config": lambda admin, at: admin.brokers.config(at),
    "brokers.update_config": lambda admin, at: admin.brokers.update_config(at, {"a": "b"}),
    "brokers.stats": lambda admin, at: admin.brokers.stats(at, "n", "k"),
    "brokers.consume_stats": lambda admin, at: admin.brokers.consume_stats(at),
    "brokers.system_topics": lambda admin, at: admin.brokers.system_topics(at),
    "brokers.clean_expired_consume_queues": lambda admin, at: admin.brokers.clean_expired_consume_queues(at),
    "brokers.clean_unused_topics": lambda admin, at: admin.brokers.clean_unused_topics(at),
    "brokers.delete_expired_commit_log": lambda admin, at: admin.brokers.delete_expired_commit_log(at),
    "topics.table": lambda admin, at: admin.topics.table(at),
    "topics.config": lambda admin, at: admin.topics.config(at, "t"),
    "topics.create": lambda admin, at: admin.topics.create(at, TopicConfig(topic_name="t")),
    "topics.delete": lambda admin, at: admin.topics.delete(at, "t"),
    "topics.stats": lambda admin, at: admin.topics.stats(at, "t"),
    "topics.groups": lambda admin, at: admin.topics.groups(at, "t"),
    "groups.table": lambda admin, at: admin.groups.table(at),
    "groups.config": lambda admin, at: admin.groups.config(at, "g"),
    "groups.create": lambda admin, at: admin.groups.create(at, SubscriptionGroupConfig(group_name="g")),
    "groups.change": lambda admin, at: admin.groups.change(at, "g", GroupChange(consume_enable=True)),
    "groups.delete": lambda admin, at: admin.groups.delete(at, "g", clean_offsets=True),
    "clients.consumers": lambda admin, at: admin.clients.consumers(at, "g"),
    "clients.consumer_ids": lambda admin, at: admin.clients.consumer_ids(at, "g"),
    "clients.running_info": lambda admin, at: admin.clients.running_info(at, "g", "c"),
    "clients.running_infos": lambda admin, at: admin.clients.running_infos(at, "g", ["c"]),
    "clients.progress": lambda admin, at: admin.clients.progress(at, "g", "t"),
    "clients.consume_directly": lambda admin, at: admin.clients.consume_directly(at, "g", "c", ID),
    "clients.subscription": lambda admin, at: admin.clients.subscription(at, "g", "t"),
    "clients.producers": lambda admin, at: admin.clients.producers(at, "g"),
    "clients.all_producers": lambda admin, at: admin.clients.all_producers(at),
    "offsets.max": lambda admin, at: admin.offsets.max(at, "t", 0),
    "offsets.min": lambda admin, at: admin.offsets.min(at, "t", 0),
    "offsets.search": lambda admin, at: admin.offsets.search(at, "t", 0, 0),
    "offsets.earliest_store_time": lambda admin, at: admin.offsets.earliest_store_time(at, "t", 0),
    "offsets.committed": lambda admin, at: admin.offsets.committed(at, "g", "t", 0),
    "offsets.commit": lambda admin, at: admin.offsets.commit(at, "g", "t", 0, 1),
    "offsets.consume_stats": lambda admin, at: admin.offsets.consume_stats(at, "g"),
    "offsets.all_committed": lambda admin, at: admin.offsets.all_committed(at),
    "offsets.time_spans": lambda admin, at: admin.offsets.time_spans(at, "g", "t"),
    "offsets.topics_of_group": lambda admin, at: admin.offsets.topics_of_group(at, "g"),
    "resets.by_time": lambda admin, at: admin.resets.by_time(at, "g", "t", 0),
    "resets.skip_accumulated": lambda admin, at: admin.resets.skip_accumulated(at, "g", "t"),
    "resets.queue_to": lambda admin, at: admin.resets.queue_to(at, "g", "t", 0, 1),
    "resets.commit_by_time": lambda admin, at: admin.resets.commit_by_time(at, "g", "t", 0),
    "resets.clone": lambda admin, at: admin.resets.clone(at, "g", "h", "t"),
    "resets.corrections": lambda admin, at: admin.resets.corrections(at, "g", "t"),
    "messages.view": lambda admin, at: admin.messages.view(at, ID),
    "messages.by_key": lambda admin, at: admin.messages.by_key(at, "t", "k"),
    "messages.by_unique_key": lambda admin, at: admin.messages.by_unique_key(at, "t", "k"),
    "messages.pull": lambda admin, at: admin.messages.pull(at, "t", 0, 0),
    "messages.queue_entries": lambda admin, at: admin.messages.queue_entries(at, "t", 0, 0),
    "messages.trace": lambda admin, at: admin.messages.trace(at, ID),
    "messages.resume_check": lambda admin, at: admin.messages.resume_check(at, ID),
    "our_broker.is_at": lambda admin, at: admin.our_broker.is_at(at),
    "our_broker.watch": lambda admin, at: admin.our_broker.watch(at),
    "our_broker.scheduler_lease": lambda admin, at: admin.our_broker.scheduler_lease(at, "d", 1),
    "our_broker.scheduler_step": lambda admin, at: admin.our_broker.scheduler_step(at, 1, "delay", "1", 1),
}
QUEUE = '{"brokerName":"a","queueId":0,"topic":"t"}'
BODIES: dict[str, bytes] = {
    "nothing": b"",
    "a page of a web server": b"<html>",
    "half a document": b'{"table":{"a":',
    "a list": b"[]",
    "null": b"null",
    "a text": b'"text"',
    "a number": b"1e999",
    "lists for tables": json.dumps(
        {
            "topicConfigTable": [],
            "subscriptionGroupTable": [],
            "table": [],
            "offsetTable": [1],
            "consumerTable": [],
            "mqTable": [],
            "consumeStatsList": {},
            "consumeTimeSpanSet": {},
            "brokerAddrTable": [],
            "data": [],
            "correctionOffsets": [],
            "connectionSet": {},
            "topicList": {},
            "groupList": {},
        }
    ).encode(),
    "texts for entries": json.dumps(
        {
            "topicConfigTable": {"t": "x"},
            "subscriptionGroupTable": {"g": "x"},
            "table": "x",
            "consumerTable": {"c": "x"},
            "consumeStatsList": ["x"],
            "consumeTimeSpanSet": ["x"],
            "brokerAddrTable": {"a": "x"},
            "data": {"g": ["x"]},
            "correctionOffsets": {"x": "y"},
            "connectionSet": ["x"],
            "topicList": [[1]],
            "groupList": [{}],
            "consumerIdList": [{}],
        }
    ).encode(),
    "keys that are no queues": b'{"offsetTable":{"x":1},"mqTable":{"{}":1},"consumerTable":{"c":{"x":1}}}',
    "numbers beyond all": (
        '{"offsetTable":{' + QUEUE + ':{"maxOffset":99999999999999999999999999,"brokerOffset":1e400}}}'
    ).encode(),
    "references in a circle": b'{"offsetTable":{"$ref":"$"},"table":{"$ref":"$.table"},"topicList":{"$ref":"$"}}',
    "deep": b'{"table":' * 20_000 + b"1" + b"}" * 20_000,
    "no UTF-8": b'{"table":{"a":"\xff\xfe"},"topicList":["\xff"]}',
    "bytes": bytes(range(256)) * 8,
}


def test_every_call_is_in_the_table() -> None:
    assert set(CALLS) == calls() - {"our_broker.watch_page"}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
async def test_an_answer_of_the_wrong_kind_is_an_error_of_the_wire_or_harmless(
    server: AnsweringServer, admin: Admin, body: bytes
) -> None:
    for code in RequestCode:
        server.succeed(code, body)
    for call in CALLS.values():
        with suppress(ClientError, WireError):  # any other error fails the test
            await call(admin, server.address)


@pytest.mark.parametrize(
    "fields", [{}, {"offset": "x"}, {"offset": "9" * 30, "timestamp": "1e9", "version": "["}], ids=str
)
async def test_header_fields_of_the_wrong_kind_are_errors_of_the_wire_or_harmless(
    server: AnsweringServer, admin: Admin, fields: dict[str, str]
) -> None:
    for code in RequestCode:
        server.succeed(code, b"{}", **fields)
    for call in CALLS.values():
        with suppress(ClientError, WireError):  # any other error fails the test
            await call(admin, server.address)


@asynccontextmanager
async def raw_server(answer: bytes, *, closes: bool) -> AsyncIterator[str]:
    """Writes `answer` to whoever asks, whatever was asked."""
    release = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        if not closes:
            await release.wait()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        release.set()
        server.close()
        await server.wait_closed()


LONG = (100 * 1024 * 1024).to_bytes(4, "big")
SHORT_HEADER = (10).to_bytes(4, "big") + (1000).to_bytes(4, "big") + b"{}" * 20
HALF = (500).to_bytes(4, "big") + b"\0" * 90
# What is written, whether the connection is closed then, what is raised with which words.
RAW: dict[str, tuple[bytes, bool, type[Exception], str]] = {
    "a web server": (b"HTTP/1.1 400 Bad\r\n\r\n", False, ConnectionLost, "not RocketMQ's .* see what listens"),
    "a frame of 100 MB": (LONG + b"\0" * 1024, False, ConnectionLost, "over the limit of 16777216 bytes"),
    "a header longer than its frame": (SHORT_HEADER, False, ConnectionLost, "header length 1000 exceeds its frame"),
    "half a frame, then the end": (HALF, True, ConnectionLost, "lost while waiting"),
    "half a frame, then silence": (HALF, False, RequestTimedOut, "did not answer"),
}


@pytest.mark.parametrize(("answer", "closes", "expected", "words"), RAW.values(), ids=RAW.keys())
@pytest.mark.slow
async def test_what_is_no_answer_at_all_ends_the_request_with_a_reason(
    answer: bytes, closes: bool, expected: type[Exception], words: str
) -> None:
    connections = Connections()
    async with raw_server(answer, closes=closes) as address:
        await connections.get(address, 60_000)
        timeout_ms = 1000 if expected is RequestTimedOut else 60_000
        with pytest.raises(expected, match=f"{address}.*{words}"):
            await Admin(connections, timeout_ms=timeout_ms).groups.table(address)
        await connections.close()


async def test_a_table_that_never_ends_is_given_up(server: AnsweringServer, admin: Admin) -> None:
    numbers = iter(range(10**9))

    def page(_: Connection, request: Command) -> Command:
        number = next(numbers)
        table = {"dataVersion": {"counter": number}, "topicConfigTable": {f"t{number}": {"topicName": f"t{number}"}}}
        return response(request, 0, ext_fields={"totalTopicNum": "1000000000"}, body=json.dumps(table).encode())

    server.answers[RequestCode.GET_ALL_TOPIC_CONFIG] = page
    with pytest.raises(BodyError, match=f"no end after {PAGES_MAX} pages"):
        await admin.topics.table(server.address)


@pytest.mark.slow
async def test_a_table_of_more_bytes_than_are_read_is_given_up(server: AnsweringServer, admin: Admin) -> None:
    padding = "x" * (8 * 1024 * 1024)
    numbers = iter(range(10**9))

    def page(_: Connection, request: Command) -> Command:
        number = next(numbers)
        table = {"dataVersion": {"counter": 1}, "topicConfigTable": {f"t{number}": {"topicName": "t", "more": padding}}}
        return response(request, 0, ext_fields={"totalTopicNum": "1000000000"}, body=json.dumps(table).encode())

    server.answers[RequestCode.GET_ALL_TOPIC_CONFIG] = page
    with pytest.raises(BodyError, match="more than 67108864 bytes"):
        await admin.topics.table(server.address)
