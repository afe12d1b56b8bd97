from __future__ import annotations

import pytest

from consumer.engine.flow_control import MIB, FlowControl, Limits, reason_to_wait
from consumer.engine.process_queue import ProcessQueue
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.stored_message import StoredMessage

LIMITS = Limits(messages_max=3, bytes_max=100, span_max=10)


def holding(*offsets: int, body_bytes: int = 1) -> ProcessQueue:
    process_queue = ProcessQueue(MessageQueue("orders", "broker-a", 0), 0)
    process_queue.put(
        (StoredMessage(topic="orders", queue_id=0, queue_offset=offset, body=bytes(body_bytes)) for offset in offsets),
        next_offset=max(offsets, default=0) + 1,
    )
    return process_queue


@pytest.mark.parametrize(
    ("process_queue", "reason"),
    [
        pytest.param(holding(), None, id="nothing cached"),
        pytest.param(holding(0, 1, 2), None, id="as many as allowed"),
        pytest.param(holding(0, 1, 2, 3), "4 messages wait", id="one too many"),
        pytest.param(holding(0, 1, body_bytes=50), None, id="as many bytes as allowed"),
        pytest.param(holding(0, 1, body_bytes=51), "MiB wait", id="too many bytes"),
        pytest.param(holding(5, 15), None, id="as far apart as allowed"),
        pytest.param(holding(5, 16), "offset 5 is unfinished", id="too far apart"),
    ],
)
def test_a_queue_waits_beyond_its_limits(process_queue: ProcessQueue, reason: str | None) -> None:
    said = reason_to_wait(process_queue, LIMITS)
    assert said is None if reason is None else reason in (said or "")


def test_queues_that_are_consumed_in_order_have_no_span() -> None:
    assert reason_to_wait(holding(5, 5000), Limits(messages_max=3, bytes_max=100, span_max=None)) is None


@pytest.mark.parametrize(
    ("queue_count", "messages_max", "mib_max"),
    [(0, 700, 20), (1, 700, 20), (7, 100, 2), (3, 233, 6), (1000, 1, 0)],
)
def test_a_topics_thresholds_are_divided_among_the_queues_and_take_the_place_of_a_queues(
    queue_count: int, messages_max: int, mib_max: int
) -> None:
    limits = FlowControl(messages_for_queue=10, messages_for_topic=700, bytes_for_topic=20 * MIB).limits(queue_count)
    assert (limits.messages_max, limits.bytes_max // MIB) == (messages_max, mib_max)


@pytest.mark.parametrize(
    ("queue_count", "messages_max", "mib_max"),
    [(0, 1000, 100), (1, 1000, 100), (20, 1000, 12), (40, 500, 6), (100_000, 1, 0)],
)
def test_the_consumers_limits_are_divided_among_its_queues(queue_count: int, messages_max: int, mib_max: int) -> None:
    limits = FlowControl().limits(queue_count)
    assert (limits.messages_max, limits.bytes_max // 2**20) == (messages_max, mib_max)
    assert limits.bytes_max > 0
