"""Resets by tools: at the broker, where the next pull hears of it, and at the members as older brokers do."""

from __future__ import annotations

import pytest

from broker.engine.processors.consumer_offset import QueryConsumerOffset, UpdateConsumerOffset
from broker.engine.processors.invoke_broker_to_reset_offset import InvokeBrokerToResetOffset
from remoting.wire.bodies.heartbeat import ConsumerData, SubscriptionData
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.progress import read_reset
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import LanguageCode, RequestCode, ResponseCode
from remoting.wire.command import Command
from tests.support.broker_parts import BrokerParts, Wire, save_topic
from tests.support.stores import draft

GROUP = {"consumerGroup": "billing", "topic": "orders", "queueId": "0"}
HOLD = str(2 | 4)


class Requester:
    def __init__(self) -> None:
        self.oneways: list[Command] = []

    def send_oneway(self, command: Command) -> None:
        self.oneways.append(command)


@pytest.fixture
async def parts(tmp_path):
    parts = BrokerParts(tmp_path / "store")
    save_topic(parts.topics, TopicConfig(topic_name="orders", read_queue_nums=2, write_queue_nums=2))
    parts.groups.find("billing")
    for number in range(4):
        parts.clock.now_ms += 1000
        parts.store.append(draft(queue_id=0, body=b"%d" % number))
    yield parts
    parts.close()


def reset(parts: BrokerParts, language: int = LanguageCode.JAVA, **fields: str) -> Command:
    processor = InvokeBrokerToResetOffset(
        topics=parts.topics,
        groups=parts.groups,
        members=parts.members,
        offsets=parts.offsets,
        store=parts.store,
        held_pulls=parts.held_pulls,
        config=parts.config,
    )
    values = {"topic": "orders", "group": "billing", "timestamp": "0", "isForce": "true"} | fields
    command = Command(code=RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, ext_fields=values, language=language)
    return parts.ask(processor, command)


def targets(answer: Command) -> dict[int, int]:
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    return {queue.queue_id: queue_offset for queue, queue_offset in read_reset(answer.body).items()}


def pull(parts: BrokerParts, queue_offset: int, *, sys_flag: str = "4", commit: int = 0) -> Command | None:
    processor = parts.pull_message()
    fields = {
        **GROUP,
        "queueOffset": str(queue_offset),
        "maxMsgNums": "32",
        "sysFlag": sys_flag,
        "commitOffset": str(commit),
        "suspendTimeoutMillis": "15000",
        "subscription": "*",
        "subVersion": "0",
    }
    return parts.ask(processor, Command(code=RequestCode.PULL_MESSAGE, ext_fields=fields))


def commit(parts: BrokerParts, queue_offset: int) -> Command:
    processor = UpdateConsumerOffset(parts.topics, parts.groups, parts.offsets)
    fields = {**GROUP, "commitOffset": str(queue_offset)}
    return parts.ask(processor, Command(code=RequestCode.UPDATE_CONSUMER_OFFSET, ext_fields=fields))


def committed(parts: BrokerParts) -> str | None:
    processor = QueryConsumerOffset(parts.offsets, parts.store, 1 << 30)
    answer = parts.ask(processor, Command(code=RequestCode.QUERY_CONSUMER_OFFSET, ext_fields=GROUP))
    return answer.ext_fields.get("offset")


def join(parts: BrokerParts, client_id: str, language: int, version: int = 479) -> Wire:
    wire = Wire()
    wire.requester = Requester()
    data = ConsumerData(group_name="billing", subscription_data_set=[SubscriptionData(topic="orders")])
    command = Command(code=RequestCode.HEART_BEAT, language=language, version=version)
    parts.members.register_consumer(command, wire, client_id, data, keeps_subscriptions=False)
    return wire


async def test_the_next_pull_is_told_once_and_commits_before_it_change_nothing(parts) -> None:
    commit(parts, 4)
    assert targets(reset(parts)) == {0: 0, 1: 0}
    assert committed(parts) == "0"
    late = commit(parts, 4)
    assert (late.code, late.remark) == (ResponseCode.SUCCESS, "Offset has been previously reset")
    moved = pull(parts, 4, sys_flag="5", commit=4)
    assert (moved.code, moved.ext_fields["nextBeginOffset"], moved.remark) == (
        ResponseCode.PULL_OFFSET_MOVED,
        "0",
        "OFFSET_RESET",
    )
    assert committed(parts) == "0", "what the pull itself would commit is older than the reset"
    assert pull(parts, 0).code == ResponseCode.SUCCESS
    commit(parts, 2)
    assert committed(parts) == "2"


async def test_a_pull_that_waits_is_told_at_once(parts, monkeypatch) -> None:
    assert pull(parts, 4, sys_flag=HOLD) is None
    parts.wire.sent.clear()
    reset(parts, queueId="0", offset="1")
    parts.held_pulls._resume_woken()
    (moved,) = parts.wire.sent
    assert (moved.code, moved.ext_fields["nextBeginOffset"]) == (ResponseCode.PULL_OFFSET_MOVED, "1")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"timestamp": "-1"}, {0: 4, 1: 0}),
        ({"timestamp": "-2"}, {0: 4, 1: 0}),
        ({"timestamp": "1700000002000"}, {0: 1, 1: 0}),
        ({"isForce": "false", "timestamp": "-1"}, {0: 4, 1: 0}),
        ({"queueId": "0", "timestamp": "1700000003000"}, {0: 2}),
        ({"queueId": "0", "offset": "-1", "timestamp": "-1"}, {0: 4}),
        ({"queueId": "0", "offset": "3"}, {0: 3}),
        ({"queueId": "0", "offset": "5"}, {0: 5}),
    ],
)
async def test_a_reset_goes_by_time_or_to_an_offset_of_one_queue(parts, fields, expected) -> None:
    assert targets(reset(parts, **fields)) == expected


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic": "nowhere"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"group": "nobody"}, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
        ({"queueId": "2"}, ResponseCode.INVALID_PARAMETER),
        ({"queueId": "0", "offset": "6"}, ResponseCode.SYSTEM_ERROR),
        ({"queueId": "0", "offset": "-5"}, ResponseCode.SYSTEM_ERROR),
        ({"timestamp": "yesterday"}, ResponseCode.SYSTEM_ERROR),
    ],
)
async def test_a_reset_that_makes_no_sense_changes_nothing(parts, fields, code) -> None:
    commit(parts, 4)
    answer = reset(parts, **fields)
    assert (answer.code, bool(answer.remark)) == (code, True)
    assert committed(parts) == "4"
    assert not parts.groups.exists("nobody")


async def test_where_members_reset_themselves_each_is_told_in_the_form_that_it_reads(parts) -> None:
    parts.config.server_side_reset = False
    for queue_id in (0, 1):
        parts.offsets.commit("billing", "orders", queue_id, 4 if queue_id == 0 else 0)
    java, cpp = join(parts, "java@1", LanguageCode.JAVA), join(parts, "cpp@1", LanguageCode.CPP)
    assert targets(reset(parts)) == {0: 0, 1: 0}
    (told,), (told_in_cpp,) = java.requester.oneways, cpp.requester.oneways
    assert told.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET
    assert told.ext_fields["group"] == "billing"
    assert read_reset(told.body) == {MessageQueue("orders", "broker-a", queue_id): 0 for queue_id in (0, 1)}
    assert b'{"offsetTable":[{"brokerName":"broker-a","queueId":0,"topic":"orders","offset":0},' in told_in_cpp.body
    assert committed(parts) == "4", "the members commit the new offset themselves"


async def test_where_members_reset_themselves_only_force_goes_forwards(parts) -> None:
    parts.config.server_side_reset = False
    for queue_id in (0, 1):
        parts.offsets.commit("billing", "orders", queue_id, 0)
    join(parts, "java@1", LanguageCode.JAVA)
    assert targets(reset(parts, timestamp="-1", isForce="false")) == {0: 0, 1: 0}
    assert targets(reset(parts, timestamp="-1")) == {0: 4, 1: 0}


async def test_where_members_reset_themselves_somebody_must_be_there_who_can(parts) -> None:
    parts.config.server_side_reset = False
    assert reset(parts).code == ResponseCode.SYSTEM_ERROR, "no offset to compare with"
    for queue_id in (0, 1):
        parts.offsets.commit("billing", "orders", queue_id, 0)
    assert reset(parts).code == ResponseCode.CONSUMER_NOT_ONLINE
    able, old = join(parts, "java@1", LanguageCode.JAVA), join(parts, "java@2", LanguageCode.JAVA, version=1)
    assert reset(parts).code == ResponseCode.SYSTEM_ERROR
    assert able.requester.oneways == old.requester.oneways == []
