"""Members of a group share the queues by a strategy, on a broker in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from consumer.engine.config import ConsumerConfig
from remoting.allocation import Configured
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.names import is_retry_topic
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_members import GROUP, Members, listener_into, order_queues
from tests.support.waiting import eventually


async def test_members_share_the_queues_by_the_strategy_they_name(broker: MemoryBroker, members: Members) -> None:
    first = await members.start(listener_into([]), strategy="AVG_BY_CIRCLE")
    second = await members.start(listener_into([]), strategy="AVG_BY_CIRCLE")
    await eventually(lambda: {len(order_queues(member)) for member in (first, second)} == {4})
    assert sorted(order_queues(member)[0] for member in (first, second)) == [0, 1]
    assert order_queues(first) in ([0, 2, 4, 6], [1, 3, 5, 7])


async def test_a_team_shares_the_queues_by_a_function_of_its_own(broker: MemoryBroker, members: Members) -> None:
    def the_last_ones(queues: Sequence[MessageQueue], members: Sequence[str], me: str) -> Sequence[MessageQueue]:
        return queues[-3:] if me == members[0] else queues[:-3]

    first = await members.start(listener_into([]), strategy=the_last_ones)
    await eventually(lambda: order_queues(first) == [5, 6, 7])
    second = await members.start(listener_into([]), strategy=the_last_ones)
    await eventually(lambda: sorted([len(order_queues(first)), len(order_queues(second))]) == [3, 5])


async def test_a_strategy_that_returns_nonsense_is_named_and_the_other_topics_go_on(
    broker: MemoryBroker, members: Members, caplog: pytest.LogCaptureFixture
) -> None:
    def half_wrong(queues: Sequence[MessageQueue], members: Sequence[str], me: str) -> Any:
        return queues if is_retry_topic(queues[0].topic) else [*queues, MessageQueue("orders", "elsewhere", 0)]

    member = await members.start(listener_into([]), strategy=half_wrong)
    await eventually(lambda: [queue.topic for queue in member.queues] == [f"%RETRY%{GROUP}"])
    await eventually(lambda: "brokerName=elsewhere" in caplog.text)
    assert "half_wrong cannot be used for 8 queues of topic 'orders'" in caplog.text


async def test_a_configured_member_reads_its_own_queues_and_shares_the_retries(
    broker: MemoryBroker, members: Members
) -> None:
    own = [MessageQueue("orders", "memory", queue_id) for queue_id in (1, 6)]
    first = await members.start(listener_into([]), strategy=Configured(own))
    second = await members.start(listener_into([]), strategy=Configured([]))
    await eventually(lambda: order_queues(first) == [1, 6])
    await eventually(lambda: [len(member.queues) for member in (first, second)] in ([3, 0], [2, 1]))


@pytest.mark.parametrize("strategy", ["BY_TASTE", "avg", None, 7])
def test_what_is_no_strategy_is_refused_at_start(strategy: Any) -> None:
    with pytest.raises(ValueError, match=r"group 'billing': no allocation strategy .* AVG, AVG_BY_CIRCLE"):
        ConsumerConfig("127.0.0.1:1", GROUP, strategy=strategy)


async def test_a_change_of_queues_is_told_with_all_queues_and_ones_own(broker: MemoryBroker, members: Members) -> None:
    told: list[tuple[int, list[int]]] = []

    def changed(topic: str, queues: Sequence[MessageQueue], own: Sequence[MessageQueue]) -> None:
        if topic == "orders":
            told.append((len(queues), [queue.queue_id for queue in own]))
            raise ValueError("it must not matter")

    first = await members.start(listener_into([]), queues_changed=changed)
    await eventually(lambda: told == [(8, list(range(8)))])
    await members.start(listener_into([]))
    await eventually(lambda: len(order_queues(first)) == 4)
    await eventually(lambda: told[1:] == [(8, order_queues(first))])
