"""What Apache's brokers of two versions really answered (tests/golden/admin), read by the admin client."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from remoting.client.admin import Admin
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.codes import RequestCode
from tests.remoting.client.admin.test_hostile_answers import CALLS
from tests.support.answering_server import AnsweringServer

GOLDEN = Path(__file__).parents[3] / "golden/admin"
VERSIONS = ["5.4.0", "4.9.7"]
# Calls whose answers are messages, or come from our own broker alone; and those that find nothing without them.
NOT_RECORDED = {
    *("messages.view", "messages.by_key", "messages.by_unique_key", "messages.pull", "messages.trace"),
    *("our_broker.is_at", "our_broker.watch", "our_broker.scheduler_lease", "our_broker.scheduler_step"),
}
# Of the 4 line: it doesn't know these, or leaves resets to members.
NOT_ON_4 = {"clients.subscription", "offsets.topics_of_group"}
NO_SUCH_GROUP = {"groups.change"}


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest, server: AnsweringServer) -> str:
    answers = json.loads((GOLDEN / f"{request.param}.json").read_text())
    for name, answer in answers.items():
        server.succeed(RequestCode[name], answer["body"].encode("latin-1"), **answer["fields"])
    if "GET_TOPIC_CONFIG" not in answers:
        server.refuse(RequestCode.GET_TOPIC_CONFIG, 3, "not supported")
    return str(request.param)


@pytest.fixture
def queue(version: str) -> MessageQueue:
    """The queue with four messages of which a group consumed three."""
    answers = json.loads((GOLDEN / f"{version}.json").read_text())
    name = answers["GET_CONSUME_STATS"]["body"].partition('"topic":"')[2].partition('"')[0]
    return MessageQueue(name, "broker-a", 0)


async def test_every_recorded_answer_is_read(server: AnsweringServer, admin: Admin, version: str) -> None:
    left_out = NOT_RECORDED | NO_SUCH_GROUP | (NOT_ON_4 if version.startswith("4.") else set())
    for name, call in CALLS.items():
        if name not in left_out and not (version.startswith("4.") and name.startswith("resets.")):
            await call(admin, server.address)


async def test_progress_is_what_it_was(
    server: AnsweringServer, admin: Admin, version: str, queue: MessageQueue
) -> None:
    at = server.address
    progress = (await admin.offsets.consume_stats(at, "g")).queues[queue]
    assert (progress.broker_offset, progress.consumer_offset) == (4, 3)
    assert progress.last_timestamp > 1_700_000_000_000
    assert (progress.pull_offset is None) == version.startswith("4.")
    spans = await admin.offsets.time_spans(at, "g", queue.topic)
    assert spans[queue].consume_time_stamp >= spans[queue].min_time_stamp > 1_700_000_000_000
    of_broker = await admin.brokers.consume_stats(at)
    assert of_broker.groups["SELF_TEST_C_GROUP"] == []
    assert any(topics and topics[0].queues for topics in of_broker.groups.values())
    assert list((await admin.offsets.all_committed(at)).values())
    assert await admin.resets.corrections(at, "g", "t") == {0: 3}


async def test_members_and_producers_are_who_they_were(server: AnsweringServer, admin: Admin, version: str) -> None:
    at = server.address
    connection = await admin.clients.consumers(at, "g")
    assert connection is not None
    (member,) = connection.connection_set
    assert (member.language, member.version) == ("PYTHON", 479)
    assert await admin.clients.consumer_ids(at, "g") == [member.client_id]
    assert [list(queues.values()) for queues in (await admin.clients.progress(at, "g", "t")).values()] == [[7]]
    assert (await admin.clients.running_info(at, "g", member.client_id)).jstack == "main"
    assert (await admin.clients.consume_directly(at, "g", member.client_id, "")).consume_result == "CR_SUCCESS"
    assert (await admin.clients.all_producers(at)).data["admins"][0].remote_ip.startswith("/127.0.0.1:")


async def test_brokers_and_name_servers_are_what_they_were(server: AnsweringServer, admin: Admin, version: str) -> None:
    at = server.address
    settings = (await admin.brokers.config(at)).settings
    assert (settings["brokerName"], settings["defaultTopicQueueNums"]) == ("broker-a", "8")
    assert settings.get("useServerSideResetOffset") == ("true" if version == "5.4.0" else None)
    info = await admin.brokers.runtime_info(at)
    assert info["brokerVersionDesc"] == "V" + version.replace(".", "_")
    assert "listenPort" in await admin.name_server.config(at)
    assert await admin.name_server.values(at, "n") == {"orders": "broker-a:8"}
    assert (await admin.cluster.info(at)).broker_addr_table["broker-a"].master_addr is not None
    assert "TBW102" in (await admin.topics.table(at)).topic_config_table
    assert (await admin.groups.table(at)).subscription_group_table["TOOLS_CONSUMER"].retry_max_times == 16
