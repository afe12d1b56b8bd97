"""Requests to members through the broker: 307, 309, 223, and what comes back when nobody answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker.engine.groups import member_calls
from broker.engine.groups.member_calls import MemberCalls
from broker.engine.processors.consume_message_directly import ConsumeMessageDirectly
from broker.engine.processors.get_consumer_running_info import GetConsumerRunningInfo
from broker.engine.processors.invoke_broker_to_get_consumer_status import InvokeBrokerToGetConsumerStatus
from remoting.wire import lenient_json
from remoting.wire.bodies.heartbeat import ConsumerData, SubscriptionData
from remoting.wire.bodies.message_queue import MessageQueue, read_queue_map
from remoting.wire.bodies.progress import write_reset
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.message_id import offset_message_id
from remoting.wire.stored_message import decode_message
from tests.support.broker_parts import BrokerParts, Wire, save_topic
from tests.support.logged import lines_of
from tests.support.stores import draft

QUEUE = MessageQueue("orders", "broker-a", 0)


class MemberWire(Wire):
    """A member that is asked; the test answers."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[Command, asyncio.Future[Command]]] = []

    def request(self, command: Command, timeout_ms: int) -> asyncio.Future[Command]:
        if not self.is_open:
            raise ConnectionError("closed")
        future: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        self.asked.append((command, future))
        return future

    async def answers(self, body: bytes = b"", code: int = 0, remark: str | None = None, **fields: str) -> Command:
        command, future = self.asked.pop(0)
        future.set_result(response(command, code, remark, fields, body))
        await settle()
        return command

    async def fails(self, error: Exception) -> None:
        self.asked.pop(0)[1].set_exception(error)
        await settle()


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


class Scene:
    def __init__(self, parts: BrokerParts) -> None:
        self.parts = parts
        self.calls = MemberCalls(parts.members)
        self.members: dict[str, MemberWire] = {}

    def join(self, client_id: str, version: int = 479) -> MemberWire:
        wire = self.members[client_id] = MemberWire()
        data = ConsumerData(group_name="billing", subscription_data_set=[SubscriptionData(topic="orders")])
        command = Command(code=RequestCode.HEART_BEAT, version=version)
        self.parts.members.register_consumer(command, wire, client_id, data, keeps_subscriptions=False)
        return wire

    def ask(self, processor: Any, flag: int = 0, **fields: str) -> Command | None:
        return self.parts.ask(processor, Command(code=processor_code(processor), ext_fields=fields, flag=flag))

    def running_info(self, client_id: str = "a@1", **fields: str) -> Command | None:
        return self.ask(GetConsumerRunningInfo(self.calls), consumerGroup="billing", clientId=client_id, **fields)

    def consume(self, client_id: str = "a@1", **fields: str) -> Command | None:
        parts = self.parts
        processor = ConsumeMessageDirectly(
            calls=self.calls, topics=parts.topics, groups=parts.groups, store=parts.store, broker_name="broker-a"
        )
        return self.ask(processor, consumerGroup="billing", clientId=client_id, **fields)

    def status(self, **fields: str) -> Command | None:
        processor = InvokeBrokerToGetConsumerStatus(self.calls, self.parts.members, self.parts.complaints)
        return self.ask(processor, topic="orders", group="billing", **fields)

    def told(self) -> Command:
        return self.parts.wire.sent.pop()


def processor_code(processor: Any) -> int:
    return {
        GetConsumerRunningInfo: RequestCode.GET_CONSUMER_RUNNING_INFO,
        ConsumeMessageDirectly: RequestCode.CONSUME_MESSAGE_DIRECTLY,
        InvokeBrokerToGetConsumerStatus: RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
    }[type(processor)]


@pytest.fixture
async def scene(tmp_path):
    parts = BrokerParts(tmp_path / "store")
    yield Scene(parts)
    parts.close()


def progress(answer: Command) -> dict[str, dict[MessageQueue, int]]:
    assert answer.code == ResponseCode.SUCCESS
    table = lenient_json.loads(answer.body)["consumerTable"]
    return {client_id: read_queue_map(queues) for client_id, queues in table.items()}


async def test_the_members_answer_is_the_tools(scene) -> None:
    member = scene.join("a@1")
    assert scene.running_info(jstackEnable="true") is None
    question = await member.answers(b"all of it", 77, "in my words", mine="too")
    assert question.code == RequestCode.GET_CONSUMER_RUNNING_INFO
    assert question.ext_fields == {"consumerGroup": "billing", "clientId": "a@1", "jstackEnable": "true"}
    told = scene.told()
    assert (told.code, told.remark, bytes(told.body), told.ext_fields) == (
        77,
        "in my words",
        b"all of it",
        {"mine": "too"},
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TimeoutError("too late"), ResponseCode.CONSUME_MSG_TIMEOUT),
        (ConnectionError("went away"), ResponseCode.SYSTEM_ERROR),
    ],
)
async def test_a_member_that_does_not_answer_is_told_of(scene, error, code) -> None:
    member = scene.join("a@1")
    scene.running_info()
    await member.fails(error)
    told = scene.told()
    assert (told.code, "a@1" in told.remark, str(error) in told.remark) == (code, True, True)


async def test_nobody_is_asked_for_a_member_that_is_away_too_old_or_closed(scene) -> None:
    scene.join("old@1", version=61)
    closed = scene.join("closed@1")
    closed.is_open = False
    for client_id in ("away@1", "old@1", "closed@1"):
        answer = scene.running_info(client_id)
        assert (answer.code, client_id in answer.remark) == (ResponseCode.SYSTEM_ERROR, True)


async def test_a_member_has_only_so_many_questions_at_once(scene, monkeypatch) -> None:
    monkeypatch.setattr(member_calls, "CALLS_PER_MEMBER_MAX", 2)
    member = scene.join("a@1")
    assert [scene.running_info() for _ in range(2)] == [None, None]
    assert scene.running_info().code == ResponseCode.SYSTEM_BUSY
    await member.answers()
    scene.told()
    assert scene.running_info() is None
    member.is_write_paused = True
    await member.answers()
    scene.told()
    assert scene.running_info().code == ResponseCode.SYSTEM_BUSY, "it does not read"


async def test_a_message_goes_to_the_member_as_it_lies_in_the_store(scene) -> None:
    parts, member = scene.parts, scene.join("a@1")
    save_topic(parts.topics, TopicConfig(topic_name="orders", topic_sys_flag=2))
    parts.groups.find("billing")
    stored = parts.store.append(draft(b"hello"))
    message_id = offset_message_id(parts.config.store_host, stored.commit_log_offset)
    assert scene.consume(msgId=message_id, topic="orders") is None
    question = await member.answers(b'{"consumeResult":"CR_LATER"}')
    assert question.code == RequestCode.CONSUME_MESSAGE_DIRECTLY
    assert decode_message(question.body).body == b"hello"
    assert question.ext_fields == {
        "consumerGroup": "billing",
        "clientId": "a@1",
        "msgId": message_id,
        "topic": "orders",
        "brokerName": "broker-a",
        "topicSysFlag": "2",
        "groupSysFlag": "0",
    }
    assert bytes(scene.told().body) == b'{"consumeResult":"CR_LATER"}'


@pytest.mark.parametrize(
    "fields",
    [{}, {"msgId": "nonsense"}, {"msgId": offset_message_id(("127.0.0.1", 10911), 4711)}],
    ids=["no id", "no offset message id", "no such message"],
)
async def test_a_message_that_is_not_there_is_given_to_nobody(scene, fields) -> None:
    member = scene.join("a@1")
    answer = scene.consume(**fields)
    assert (answer.code, bool(answer.remark)) == (ResponseCode.SYSTEM_ERROR, True)
    assert member.asked == []


async def test_every_member_says_how_far_it_is_and_who_is_silent_is_left_out(scene) -> None:
    a, b, c = (scene.join(name) for name in ("a@1", "b@1", "c@1"))
    assert scene.status() is None
    body = write_reset({QUEUE: 7}).replace(b"offsetTable", b"messageQueueTable")
    question = await a.answers(body)
    assert (question.code, question.ext_fields) == (
        RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT,
        {"topic": "orders", "group": "billing"},
    )
    await b.answers(b"{torn")
    assert scene.parts.wire.sent == []
    await c.fails(TimeoutError("late"))
    assert progress(scene.told()) == {"a@1": {QUEUE: 7}}


async def test_members_that_do_not_say_how_far_they_are_are_logged_once_a_minute(scene, caplog) -> None:
    torn, late = scene.join("torn@1"), scene.join("late@1")
    for _ in range(20):
        scene.status()
        await torn.answers(b"{torn")
        await late.fails(TimeoutError("late"))
        scene.told()
    unreadable, missing = lines_of(caplog, "remoting")
    assert unreadable.startswith("torn@1 answered with progress that cannot be read")
    assert missing == "late@1 did not answer with its progress: late"
    scene.parts.clock.now_ms += 60_000
    scene.parts.complaints.report_left_out()
    assert lines_of(caplog, "remoting")[2:] == [
        "127.0.0.1, unreadable progress: 19 more in 60 s were not logged",
        "127.0.0.1, no progress: 19 more in 60 s were not logged",
    ]


async def test_one_member_alone_can_be_asked_how_far_it_is(scene) -> None:
    a, b = scene.join("a@1"), scene.join("b@1")
    assert scene.status(clientAddr="b@1") is None
    await b.answers(b'{"messageQueueTable":{}}')
    assert (progress(scene.told()), a.asked) == ({"b@1": {}}, [])
    assert progress(scene.status(clientAddr="nobody@1")) == {}


async def test_progress_of_a_group_with_nobody_online_or_a_member_too_old_is_refused(scene) -> None:
    assert scene.status().code == ResponseCode.SYSTEM_ERROR
    scene.join("a@1", version=27)
    assert scene.status().code == ResponseCode.SYSTEM_ERROR
