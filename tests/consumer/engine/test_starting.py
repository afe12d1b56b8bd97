"""What is checked when a member starts, and what start and stop do in each state."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from consumer.engine.broker_check import SubscriptionRefused
from consumer.engine.config import ConsumerConfig
from consumer.engine.consume_concurrently import ConcurrentLimits
from consumer.engine.flow_control import MIB, FlowControl
from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.push_consumer import PushConsumer, ServiceState
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_members import GROUP, Members, listener_into, order_queues
from tests.support.waiting import eventually


def consumer(namesrv: str, sql: str | None = None) -> PushConsumer:
    return PushConsumer(ConsumerConfig(namesrv, GROUP), {"orders": Listener("orders", print, sql=sql)})


async def test_a_broker_is_asked_about_an_sql_expression_before_the_start_and_pulls_name_its_kind(
    broker: MemoryBroker, members: Members
) -> None:
    asked: list[Command] = []

    def accept(request: Command) -> Command:
        asked.append(request)
        return response(request, ResponseCode.SUCCESS)

    broker.faults[RequestCode.CHECK_CLIENT_CONFIG] = accept
    member = await members.start(listener_into([]), sql="amount > 100")
    assert len(asked) == 1  # of the topic, not of the retries
    body = json.loads(asked[0].body)
    assert (body["clientId"], body["group"]) == (member.client_id, GROUP)
    assert body["subscriptionData"]["expressionType"] == "SQL92"
    assert body["subscriptionData"]["subString"] == "amount > 100"
    await eventually(lambda: len(order_queues(member)) == 8)
    await eventually(lambda: broker.owners("orders") == 8)
    kinds = {fields["topic"]: fields["expressionType"] for code, fields in broker.seen if code == 11}
    assert kinds["orders"] == "SQL92"
    assert broker.subscriptions[GROUP]["orders"].expression_type == "SQL92"


async def test_an_expression_that_a_broker_refuses_ends_the_start_with_the_brokers_words(broker: MemoryBroker) -> None:
    broker.faults[RequestCode.CHECK_CLIENT_CONFIG] = lambda request: response(
        request, ResponseCode.SYSTEM_ERROR, "The broker does not support consumer to filter message by SQL92"
    )
    member = consumer(broker.namesrv, "amount > 100")
    with pytest.raises(
        SubscriptionRefused, match="'billing' cannot consume topic 'orders' by 'amount > 100'"
    ) as refused:
        await member.start()
    assert "filter message by SQL92" in str(refused.value)
    assert "enablePropertyFilter=true" in str(refused.value)
    assert member.state is ServiceState.START_FAILED
    assert not broker.members[GROUP]
    with pytest.raises(RuntimeError, match="was started before and failed to start: make another"):
        await member.start()
    await member.stop()


async def test_a_broker_that_is_away_does_not_keep_an_expression_from_starting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    member = consumer("127.0.0.1:1", "amount > 100")
    with caplog.at_level(logging.WARNING):
        await member.start()
    assert "no broker could be asked about the expression of topic 'orders'" in caplog.text
    await member.stop()


async def test_start_works_once_and_stop_as_often_as_one_likes(broker: MemoryBroker) -> None:
    member = consumer(broker.namesrv)
    await member.stop()
    assert member.state is ServiceState.CREATE_JUST
    await member.start()
    with pytest.raises(RuntimeError, match="'billing' was started before and runs"):
        await member.start()
    await asyncio.gather(member.stop(), member.stop())
    with pytest.raises(RuntimeError, match="was started before and was stopped"):
        await member.start()


async def test_a_start_and_a_stop_at_the_same_time_leave_nothing_behind(broker: MemoryBroker) -> None:
    member = consumer(broker.namesrv)
    await asyncio.gather(member.start(), member.stop())
    assert member.state is ServiceState.SHUTDOWN_ALREADY
    assert not broker.members[GROUP]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"concurrent": ConcurrentLimits(threads=0)}, "threads is 0; 1 to 1000"),
        ({"concurrent": ConcurrentLimits(threads=1001)}, "threads is 1001"),
        ({"flow_control": FlowControl(messages_for_queue=0)}, "messages_for_queue is 0; 1 to 65535"),
        ({"flow_control": FlowControl(messages_for_topic=6_553_501)}, "messages_for_topic is 6553501; 1 to 6553500"),
        ({"flow_control": FlowControl(bytes_for_queue=1024 * MIB + 1)}, "bytes_for_queue is 1073741825"),
        ({"flow_control": FlowControl(bytes_for_topic=0)}, "bytes_for_topic is 0"),
        ({"flow_control": FlowControl(span_max=65_536)}, "span_max is 65536; 1 to 65535"),
        ({"flow_control": FlowControl(pull_batch_size=1025)}, "pull_batch_size is 1025; 1 to 1024"),
        ({"flow_control": FlowControl(pull_interval_ms=-1)}, "pull_interval_ms is -1; 0 to 65535"),
        ({"max_reconsume_times": -1}, "max_reconsume_times is -1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_number_out_of_javas_range_is_refused_with_the_range(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"group 'billing': {words}"):
        ConsumerConfig("127.0.0.1:1", GROUP, **settings)


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("", "blank"),
        ("b" * 121, "121 characters"),
        ("billing today", "holds a character"),
        ("DEFAULT_CONSUMER", "the default of RocketMQ's clients: choose another"),
    ],
)
def test_a_group_that_cannot_be_is_refused_when_the_consumer_is_made(group: str, words: str) -> None:
    with pytest.raises(MessageError, match=words):
        PushConsumer(ConsumerConfig("127.0.0.1:1", group), {"orders": Listener("orders", print)})


async def test_brokers_know_group_and_topics_by_the_namespace_and_listeners_do_not(
    broker: MemoryBroker, members: Members
) -> None:
    topics: list[tuple[str, int]] = []

    async def listen(message: Message) -> None:
        topics.append((message.topic, message.reconsume_times))
        if not message.reconsume_times:
            raise ValueError("once more")

    broker.create_topic("prod%orders", 1)
    broker.put("prod%orders", b"x")
    member = await members.start(listen, namespace="prod")
    await eventually(lambda: len(topics) == 2)
    assert topics == [("orders", 0), ("orders", 1)]
    assert set(broker.members) == {"prod%billing"}
    assert {queue.topic for queue in member.queues} == {"prod%orders", "%RETRY%prod%billing"}
    assert member.config.group == "prod%billing"
