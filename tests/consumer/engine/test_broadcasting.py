"""Members of a broadcasting group: each gets everything, drops what fails, and goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from consumer.engine.config import ConsumerConfig
from consumer.engine.message import Message
from consumer.engine.offset_store.offset_file import read_offsets
from consumer.engine.push_consumer import PushConsumer
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.codes import RequestCode
from remoting.wire.names import retry_topic
from tests.support.memory_broker import BROKER_NAME, MemoryBroker
from tests.support.memory_members import GROUP, Members, listener_into, order_queues
from tests.support.waiting import eventually

Join = Callable[..., Any]


@pytest.fixture
def join(members: Members, tmp_path: Path) -> Join:
    async def start(call: Callable[[Message], Any], **config: Any) -> PushConsumer:
        return await members.start(call, is_broadcasting=True, offsets_folder=tmp_path, **config)

    return start


async def test_every_member_gets_every_message(broker: MemoryBroker, join: Join) -> None:
    one: list[bytes] = []
    other: list[bytes] = []
    members = [await join(listener_into(one)), await join(listener_into(other))]
    sent = [str(number).encode() for number in range(80)]
    broker.put("orders", *sent)
    await eventually(lambda: len(one) == len(other) == 80)
    assert sorted(one) == sorted(other) == sorted(sent)
    assert [order_queues(member) for member in members] == [list(range(8))] * 2


async def test_a_member_goes_on_where_it_stopped_and_the_broker_knows_nothing_of_it(
    broker: MemoryBroker, join: Join, members: Members, tmp_path: Path
) -> None:
    bodies: list[bytes] = []
    broker.put("orders", *[b"early"] * 16)
    member = await join(listener_into(bodies))
    await eventually(lambda: len(bodies) == 16)
    await members.stop(member)
    assert read_offsets(tmp_path / GROUP / "0") == {
        MessageQueue("orders", BROKER_NAME, queue_id): 2 for queue_id in range(8)
    }
    assert broker.offsets == {}
    broker.put("orders", *[b"late"] * 8)
    await join(listener_into(bodies))
    await eventually(lambda: len(bodies) == 24)
    assert bodies[16:] == [b"late"] * 8
    codes = {code for code, _ in broker.seen}
    assert not codes & {RequestCode.UPDATE_CONSUMER_OFFSET, RequestCode.QUERY_CONSUMER_OFFSET}


async def test_a_message_that_fails_is_dropped_with_a_warning(
    broker: MemoryBroker, join: Join, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []

    async def listen(message: Message) -> None:
        seen.append(message.text)
        if message.text == "bad":
            raise ValueError("bad")

    broker.put("orders", b"bad", b"good", queue_id=0)
    member = await join(listen)
    await eventually(lambda: "good" in seen)
    queue = MessageQueue("orders", BROKER_NAME, 0)
    await eventually(lambda: member.running_info().queues[queue].commit_offset == 2)
    assert seen == ["bad", "good"]
    assert "failed and is dropped" in caplog.text
    assert RequestCode.CONSUMER_SEND_MSG_BACK not in {code for code, _ in broker.seen}


async def test_it_subscribes_to_no_retries_and_says_that_it_is_broadcasting(broker: MemoryBroker, join: Join) -> None:
    member = await join(listener_into([]))
    await eventually(lambda: order_queues(member) == list(range(8)))
    assert retry_topic(GROUP) not in broker.subscriptions[GROUP]
    assert broker.message_models[GROUP] == "BROADCASTING"


async def test_in_order_it_needs_no_locks(broker: MemoryBroker, join: Join) -> None:
    one: list[bytes] = []
    other: list[bytes] = []
    await join(listener_into(one), is_orderly=True)
    await join(listener_into(other), is_orderly=True)
    sent = [str(number).encode() for number in range(100)]
    broker.put("orders", *sent, queue_id=3)
    await eventually(lambda: len(one) == len(other) == 100)
    assert one == other == sent
    assert RequestCode.LOCK_BATCH_MQ not in {code for code, _ in broker.seen}


async def test_pulls_carry_no_offset_to_commit(broker: MemoryBroker, join: Join) -> None:
    bodies: list[bytes] = []
    await join(listener_into(bodies))
    broker.put("orders", *[b"x"] * 64)
    await eventually(lambda: len(bodies) == 64)
    pulls = [fields for code, fields in broker.seen if code == RequestCode.PULL_MESSAGE]
    assert {int(fields["sysFlag"]) & 1 for fields in pulls} == {0}


def test_a_broadcasting_group_needs_a_folder() -> None:
    with pytest.raises(ValueError, match="offsets_folder"):
        ConsumerConfig("127.0.0.1:1", GROUP, is_broadcasting=True)
