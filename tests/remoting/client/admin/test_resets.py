from __future__ import annotations

import asyncio

import pytest

from remoting.client.admin import Admin
from remoting.client.errors import NotSupported
from remoting.connection import Connection
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.progress import write_reset
from remoting.wire.bodies.topics import TopicOffset, write_topic_stats
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from tests.support.answering_server import AnsweringServer

QUEUE = MessageQueue("orders", "a", 3)
RESET = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET


async def test_a_group_is_moved_by_time_on_all_queues(server: AnsweringServer, admin: Admin) -> None:
    server.succeed(RESET, write_reset({QUEUE: 7}))
    assert await admin.resets.by_time(server.address, "billing", "orders", 1_700_000_000_000) == {QUEUE: 7}
    await admin.resets.skip_accumulated(server.address, "billing", "orders")
    by_time, to_end = (request.ext_fields for request in server.asked)
    assert by_time == {
        "topic": "orders",
        "group": "billing",
        "timestamp": "1700000000000",
        "isForce": "true",
        "queueId": "-1",
        "offset": "-1",
    }
    assert to_end["timestamp"] == "-1"
    with pytest.raises(ValueError, match="-2 is no time"):
        await admin.resets.by_time(server.address, "billing", "orders", -2)


@pytest.mark.parametrize("settings", [b"", b"useServerSideResetOffset=false\n"], ids=["old", "off"])
async def test_one_queue_is_left_alone_where_all_would_move(
    server: AnsweringServer, admin: Admin, settings: bytes
) -> None:
    server.succeed(RequestCode.GET_BROKER_CONFIG, settings)
    with pytest.raises(NotSupported, match="useServerSideResetOffset"):
        await admin.resets.queue_to(server.address, "billing", "orders", 3, 5)
    assert server.asked_codes() == [RequestCode.GET_BROKER_CONFIG]


async def test_one_queue_is_moved_where_the_broker_resets_itself(server: AnsweringServer, admin: Admin) -> None:
    server.succeed(RequestCode.GET_BROKER_CONFIG, b"useServerSideResetOffset=true\n")
    server.succeed(RESET, write_reset({QUEUE: 5}))
    assert await admin.resets.queue_to(server.address, "billing", "orders", 3, 5) == 5
    assert server.asked[1].ext_fields["queueId"] == "3"
    assert server.asked[1].ext_fields["offset"] == "5"


async def test_a_group_without_members_is_moved_by_commits(server: AnsweringServer, admin: Admin) -> None:
    server.succeed(RequestCode.GET_TOPIC_STATS_INFO, write_topic_stats({QUEUE: TopicOffset(max_offset=9)}))
    server.succeed(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, offset=4)
    server.succeed(RequestCode.GET_MAX_OFFSET, offset=9)
    assert await admin.resets.commit_by_time(server.address, "billing", "orders", 1_700_000_000_000) == {QUEUE: 4}
    assert await admin.resets.commit_by_time(server.address, "billing", "orders", -1) == {QUEUE: 9}
    commits = [request.ext_fields["commitOffset"] for request in server.of_code(RequestCode.UPDATE_CONSUMER_OFFSET)]
    assert commits == ["4", "9"]


async def test_no_commit_is_under_way_beside_the_first(server: AnsweringServer, admin: Admin) -> None:
    """Apache's broker loses one of two that come at once when it has none of the topic and group yet."""
    queues = {MessageQueue("orders", "a", queue_id): TopicOffset(max_offset=9) for queue_id in range(4)}
    server.succeed(RequestCode.GET_TOPIC_STATS_INFO, write_topic_stats(queues))
    server.succeed(RequestCode.GET_MAX_OFFSET, offset=9)
    under_way: set[int] = set()
    counts: list[int] = []

    def commit(connection: Connection, request: Command) -> None:
        def answer() -> None:
            under_way.remove(request.opaque)
            connection.send(response(request, ResponseCode.SUCCESS))

        under_way.add(request.opaque)
        counts.append(len(under_way))
        asyncio.get_running_loop().call_later(0.05, answer)

    server.answers[RequestCode.UPDATE_CONSUMER_OFFSET] = commit
    assert await admin.resets.commit_by_time(server.address, "billing", "orders", -1) == dict.fromkeys(queues, 9)
    assert counts == [1, 1, 2, 3]
