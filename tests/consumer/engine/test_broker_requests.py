"""What brokers and tools ask a member, and what it answers."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from consumer.engine.consume_directly import DIRECTLY_MAX
from consumer.engine.message import Message
from consumer.engine.outcomes import Later
from consumer.engine.push_consumer import PushConsumer
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.running_info import read_running_info
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.stored_message import StoredMessage, encode_message
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_members import GROUP, Members, listener_into, order_queues
from tests.support.waiting import eventually


def request(code: int, member: PushConsumer, body: bytes = b"", **fields: str) -> Command:
    return Command(code=code, ext_fields={"consumerGroup": GROUP, "clientId": member.client_id, **fields}, body=body)


async def joined(broker: MemoryBroker, members: Members, call: Any, **config: Any) -> PushConsumer:
    member = await members.start(call, **config)
    await eventually(lambda: len(order_queues(member)) == 8)
    return member


async def consumed_directly(broker: MemoryBroker, member: PushConsumer, body: bytes, **fields: str) -> dict[str, Any]:
    stored = encode_message(StoredMessage(topic="orders", queue_id=3, queue_offset=7, body=body))
    asked = request(RequestCode.CONSUME_MESSAGE_DIRECTLY, member, stored, brokerName="memory", **fields)
    answer = await broker.ask_member(GROUP, member.client_id, asked)
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    result: dict[str, Any] = json.loads(answer.body)
    return result


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
async def test_a_message_is_consumed_directly_and_nothing_else_follows(
    broker: MemoryBroker, members: Members, is_async: bool
) -> None:
    seen: list[tuple[str, MessageQueue | None, int]] = []

    def listen(message: Message) -> None:
        seen.append((message.text, message.queue, message.queue_offset))
        if message.text == "later":
            raise Later("the mail server is busy")
        if message.text == "bad":
            raise ValueError("no such customer")

    async def listen_async(message: Message) -> None:
        listen(message)

    member = await joined(broker, members, listen_async if is_async else listen, is_async=is_async)
    fine = await consumed_directly(broker, member, b"fine")
    assert (fine["consumeResult"], fine["order"], fine["remark"]) == ("CR_SUCCESS", False, None)
    assert seen == [("fine", MessageQueue("orders", "memory", 3), 7)]
    later = await consumed_directly(broker, member, b"later")
    assert (later["consumeResult"], later["remark"]) == ("CR_LATER", "Later: the mail server is busy")
    bad = await consumed_directly(broker, member, b"bad")
    assert (bad["consumeResult"], bad["remark"]) == ("CR_THROW_EXCEPTION", "ValueError: no such customer")
    assert not broker.held_retries
    assert all(queue.commit_offset == 0 for queue in member.running_info().queues.values())


async def test_listeners_that_hang_leave_no_room_for_more_and_do_not_hold_up_a_stop(
    broker: MemoryBroker, members: Members
) -> None:
    may_end = threading.Event()

    def listen(message: Message) -> None:
        may_end.wait(60)

    member = await joined(broker, members, listen, is_async=False)
    stored = encode_message(StoredMessage(topic="orders", queue_id=0, body=b"x"))
    asked = [request(RequestCode.CONSUME_MESSAGE_DIRECTLY, member, stored) for _ in range(DIRECTLY_MAX + 1)]
    answers = [asyncio.create_task(broker.ask_member(GROUP, member.client_id, one)) for one in asked]
    done, _ = await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result().code for task in done] == [ResponseCode.SYSTEM_BUSY]
    may_end.set()
    results = await asyncio.gather(*answers)
    assert sorted(result.code for result in results) == [ResponseCode.SUCCESS] * DIRECTLY_MAX + [
        ResponseCode.SYSTEM_BUSY
    ]


@pytest.mark.parametrize(
    "code", [RequestCode.CONSUME_MESSAGE_DIRECTLY, RequestCode.GET_CONSUMER_RUNNING_INFO], ids=["directly", "info"]
)
async def test_another_group_is_not_answered_for(broker: MemoryBroker, members: Members, code: int) -> None:
    member = await joined(broker, members, listener_into([]))
    answer = await broker.ask_member(GROUP, member.client_id, request(code, member, consumerGroup="mailing"))
    assert (answer.code, answer.remark) == (
        ResponseCode.SYSTEM_ERROR,
        "The Consumer Group <mailing> not exist in this consumer",
    )


@pytest.mark.parametrize("body", [b"", b"nonsense"])
async def test_what_is_no_message_is_refused(broker: MemoryBroker, members: Members, body: bytes) -> None:
    member = await joined(broker, members, listener_into([]))
    answer = await broker.ask_member(
        GROUP, member.client_id, request(RequestCode.CONSUME_MESSAGE_DIRECTLY, member, body)
    )
    assert answer.code == ResponseCode.SYSTEM_ERROR


async def test_the_running_info_tells_the_settings_by_javas_names_and_stacks_when_they_are_wanted(
    broker: MemoryBroker, members: Members
) -> None:
    member = await joined(broker, members, listener_into([]), strategy="AVG_BY_CIRCLE")
    plain = await broker.ask_member(GROUP, member.client_id, request(RequestCode.GET_CONSUMER_RUNNING_INFO, member))
    info = read_running_info(plain.body)
    assert info.jstack is None
    told = {
        "consumerGroup": "billing",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
        "pullThresholdForQueue": "1000",
        "pullThresholdForTopic": "-1",
        "pullThresholdSizeForQueue": "100",
        "maxReconsumeTimes": "16",
        "consumeTimeout": "15",
        "allocateMessageQueueStrategy": "AVG_BY_CIRCLE",
        "PROP_THREADPOOL_CORE_SIZE": "20",
    }
    assert {name: info.properties.get(name) for name in told} == told
    wanted = request(RequestCode.GET_CONSUMER_RUNNING_INFO, member, jstackEnable="true")
    with_stacks = read_running_info((await broker.ask_member(GROUP, member.client_id, wanted)).body)
    assert with_stacks.jstack is not None
    assert "MainThread  TID:" in with_stacks.jstack
    assert "task pull orders[memory:0]" in with_stacks.jstack
    assert "pull_loop.py:" in with_stacks.jstack


async def test_a_member_tells_the_offsets_of_its_queues_of_a_topic(broker: MemoryBroker, members: Members) -> None:
    bodies: list[bytes] = []
    broker.put("orders", *[b"x"] * 8)
    member = await joined(broker, members, listener_into(bodies))
    await eventually(lambda: len(bodies) == 8)
    fields = {"topic": "orders", "group": GROUP}
    asked = Command(code=RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, ext_fields=fields)
    answer = await broker.ask_member(GROUP, member.client_id, asked)
    assert answer.code == ResponseCode.SUCCESS
    assert bytes(answer.body).count(b'"topic":"orders"') == 8
