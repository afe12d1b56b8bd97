"""Which replica a queue is pulled from, and what the pull carries."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import cast

from consumer.engine.brokers import Brokers
from consumer.engine.clock import now_ms
from consumer.engine.consuming import Consuming
from consumer.engine.flow_control import FlowControl
from consumer.engine.offset_store.remote import RemoteOffsetStore
from consumer.engine.process_queue import ProcessQueue
from consumer.engine.pull_loop import PullContext, PullLoop
from consumer.engine.statistics import Statistics
from consumer.engine.subscriptions import subscribe
from consumer.engine.suspension import Suspension
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.codes import RESPONSE_FLAG, ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.pull import COMMIT_OFFSET_FLAG, SUSPEND_FLAG, PullMessageHeader
from tests.support.waiting import eventually

QUEUE = MessageQueue("orders", "broker-a", 0)


class Replicas:
    """Answers each pull that nothing matched, and suggests the next of the broker ids; then it holds the pull."""

    def __init__(self, suggestions: Iterable[int]) -> None:
        self._suggestions = iter(suggestions)
        self.asked: list[tuple[int, PullMessageHeader]] = []

    async def pull(self, header: PullMessageHeader, broker_name: str, broker_id: int) -> Command:
        assert broker_name == QUEUE.broker_name
        self.asked.append((broker_id, header))
        suggested = next(self._suggestions, None)
        if suggested is None:
            await asyncio.Event().wait()
        fields = {
            "suggestWhichBrokerId": str(suggested),
            "nextBeginOffset": str(header.queue_offset + 1),
            "minOffset": "0",
            "maxOffset": "90",
        }
        return Command(code=ResponseCode.PULL_RETRY_IMMEDIATELY, flag=RESPONSE_FLAG, ext_fields=fields)


async def test_the_replica_that_was_suggested_last_is_pulled_and_only_the_master_is_told_an_offset() -> None:
    replicas = Replicas([1, 1, 0])
    brokers = cast(Brokers, replicas)
    offsets = RemoteOffsetStore(brokers)
    offsets.advance(QUEUE, 7)
    process_queue = ProcessQueue(QUEUE, 0)
    context = PullContext(
        brokers=brokers,
        offsets=offsets,
        subscriptions=subscribe("billing", {"orders": "*"}, 5),
        statistics=Statistics(now_ms),
        clock=now_ms,
        consuming=cast(Consuming, None),  # nothing comes
        flow_control=FlowControl(),
        process_queues={QUEUE: process_queue},
        suspension=Suspension(),
        request_heartbeat=lambda: None,
    )
    loop = PullLoop(process_queue, 7, context, lambda *_: None)
    loop.start()
    await eventually(lambda: len(replicas.asked) == 4)
    loop.stop()
    both = SUSPEND_FLAG | COMMIT_OFFSET_FLAG
    assert [(broker_id, header.sys_flag) for broker_id, header in replicas.asked] == [
        (0, both),
        (1, SUSPEND_FLAG),
        (1, SUSPEND_FLAG),
        (0, both),
    ]
    assert [header.queue_offset for _, header in replicas.asked] == [7, 8, 9, 10]
    assert {header.suspend_timeout_millis for _, header in replicas.asked} == {15_000}
    # What was filtered out counts as consumed: the master hears of it with the next pull.
    assert replicas.asked[3][1].commit_offset == 10
