"""A pull whose member has a newer subscription than its heartbeats said: the member is asked, and the pull answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.engine.serving.requests import Request
from remoting.wire.bodies.heartbeat import ConsumerData, SubscriptionData
from remoting.wire.bodies.running_info import ConsumerRunningInfo, write_running_info
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from tests.support.broker_parts import BrokerParts, Wire, save_topic
from tests.support.logged import lines_of


class MemberWire(Wire):
    """A member that is asked; the test answers."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[Command, asyncio.Future[Command]]] = []

    def request(self, command: Command, timeout_ms: int) -> asyncio.Future[Command]:
        future: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        self.asked.append((command, future))
        return future

    async def tells(self, *subscriptions: SubscriptionData, code: int = ResponseCode.SUCCESS) -> None:
        await self.answers(write_running_info(ConsumerRunningInfo(subscriptions=list(subscriptions))), code)

    async def answers(self, body: bytes, code: int = ResponseCode.SUCCESS) -> None:
        command, future = self.asked.pop(0)
        future.set_result(response(command, code, body=body))
        await settle()


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


class Scene:
    def __init__(self, parts: BrokerParts) -> None:
        self.parts = parts
        self.pulls = parts.pull_message()

    def join(self, client_id: str, *subscriptions: SubscriptionData, version: int = 479) -> MemberWire:
        wire = MemberWire()
        data = ConsumerData(group_name="billing", subscription_data_set=list(subscriptions))
        command = Command(code=RequestCode.HEART_BEAT, version=version)
        self.parts.members.register_consumer(command, wire, client_id, data, keeps_subscriptions=False)
        return wire

    def pull(self, wire: Wire, sub_version: int, queue_id: int = 0) -> Command | None:
        """Returns the refusal, too."""
        fields = {
            "consumerGroup": "billing",
            "topic": "orders",
            "queueId": str(queue_id),
            "queueOffset": "0",
            "maxMsgNums": "32",
            "sysFlag": "0",
            "commitOffset": "0",
            "suspendTimeoutMillis": "15000",
            "subVersion": str(sub_version),
        }
        command = Command(code=RequestCode.PULL_MESSAGE, opaque=4, ext_fields=fields)
        try:
            return self.pulls(Request(command, wire))  # type: ignore[arg-type]
        except MessageError as error:
            return response(command, error.response_code, str(error))


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    parts = BrokerParts(tmp_path / "store")
    save_topic(parts.topics, TopicConfig(topic_name="orders", read_queue_nums=4, write_queue_nums=4))
    yield Scene(parts)
    parts.close()


def subscription(version: int, tags: str = "*", topic: str = "orders") -> SubscriptionData:
    return SubscriptionData(topic=topic, sub_string=tags, sub_version=version)


async def test_pulls_wait_for_the_members_newer_subscription_and_are_answered_then(scene: Scene) -> None:
    wire = scene.join("a@1", subscription(5))
    assert scene.pull(wire, 7) is None
    assert scene.pull(wire, 7, queue_id=1) is None
    assert [command.code for command, _ in wire.asked] == [RequestCode.GET_CONSUMER_RUNNING_INFO]
    assert wire.asked[0][0].ext_fields["clientId"] == "a@1"
    await wire.tells(subscription(7))
    assert [answer.code for answer in wire.sent] == [ResponseCode.PULL_NOT_FOUND] * 2
    members = scene.parts.members.find("billing")
    assert members is not None
    assert members.subscriptions["orders"].sub_version == 7


async def test_the_newer_subscription_counts_for_the_whole_group_as_one_from_a_heartbeat(scene: Scene) -> None:
    wire = scene.join("a@1", subscription(5))
    scene.join("b@1", subscription(5))
    scene.pull(wire, 9)
    await wire.tells(subscription(9, "paid"), subscription(9, topic="refunds"))
    members = scene.parts.members.find("billing")
    assert members is not None
    assert {topic: one.sub_string for topic, one in members.subscriptions.items()} == {"orders": "paid", "refunds": "*"}


async def test_a_member_that_tells_nothing_newer_is_refused_as_rocketmq_refuses_it(scene: Scene) -> None:
    wire = scene.join("a@1", subscription(5))
    assert scene.pull(wire, 7) is None
    await wire.tells(subscription(6))
    assert [answer.code for answer in wire.sent] == [ResponseCode.SUBSCRIPTION_NOT_LATEST]
    assert scene.pull(wire, 7) is None  # asked again
    await wire.tells(subscription(8), code=ResponseCode.SYSTEM_ERROR)
    assert [answer.code for answer in wire.sent] == [ResponseCode.SUBSCRIPTION_NOT_LATEST] * 2


async def test_a_member_that_tells_nothing_readable_with_each_pull_is_logged_once_a_minute(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    wire = scene.join("a@1", subscription(5))
    for _ in range(20):
        assert scene.pull(wire, 7) is None
        await wire.answers(b"{torn")
    assert [answer.code for answer in wire.sent] == [ResponseCode.SUBSCRIPTION_NOT_LATEST] * 20
    (line,) = lines_of(caplog, "remoting")
    assert line.startswith("group billing: the running info of 127.0.0.1:40000 cannot be read")
    scene.parts.clock.now_ms += 60_000
    scene.parts.complaints.report_left_out()
    assert lines_of(caplog, "remoting")[1:] == ["127.0.0.1, unreadable running info: 19 more in 60 s were not logged"]


async def test_who_cannot_be_asked_is_refused_at_once(scene: Scene) -> None:
    old = scene.join("old@1", subscription(5), version=10)
    answers = [scene.pull(old, 7), scene.pull(MemberWire(), 7)]
    assert [answer and answer.code for answer in answers] == [ResponseCode.SUBSCRIPTION_NOT_LATEST] * 2
    assert not old.asked


async def test_an_answer_of_a_member_that_is_gone_changes_nothing(scene: Scene) -> None:
    wire = scene.join("a@1", subscription(5))
    scene.pull(wire, 7)
    scene.parts.members.connection_lost(wire)  # type: ignore[arg-type]
    await wire.tells(subscription(7))
    assert scene.parts.members.find("billing") is None
