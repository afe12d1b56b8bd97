from __future__ import annotations

import pytest

from remoting.client.admin import Admin
from remoting.client.errors import NotSupported
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.progress import write_reset
from remoting.wire.bodies.topics import TopicOffset, write_topic_stats
from remoting.wire.codes import RequestCode
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
