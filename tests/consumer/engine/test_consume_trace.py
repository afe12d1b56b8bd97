"""What a traced member sends to the trace topic, on a broker in memory."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest

from consumer.engine.consume_trace import ConsumeTrace
from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.outcomes import Later
from remoting.client import trace
from remoting.wire.bodies.trace import SUB_AFTER, SUB_BEFORE, ConsumeOutcome, TraceRecord, read_trace
from remoting.wire.names import TRACE_TOPIC
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_members import Members
from tests.support.waiting import eventually


def records(broker: MemoryBroker) -> list[TraceRecord]:
    stored = [
        message for queue, messages in broker.queues.items() if queue.topic == TRACE_TOPIC for message in messages
    ]
    return [record for message in stored for record in read_trace(message.body)]


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
async def test_each_call_leaves_two_records_with_one_request_id(
    broker: MemoryBroker, members: Members, is_async: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = trace.TraceLimits(send_timeout_ms=60_000, close_timeout_s=60)
    monkeypatch.setattr(trace, "TraceLimits", lambda: limits)
    broker.create_topic(TRACE_TOPIC, 1)
    seen: list[str] = []

    def listen(message: Message) -> None:
        seen.append(message.text)
        if message.text == "later" and not message.reconsume_times:
            raise Later
        if message.text == "bad" and not message.reconsume_times:
            raise ValueError

    async def listen_async(message: Message) -> None:
        listen(message)

    broker.put("orders", b"fine", b"later", b"bad")
    member = await members.start(listen_async if is_async else listen, is_async=is_async, trace=True)
    await eventually(lambda: len(seen) == 5)
    await members.stop(member)  # sends what is left
    sent = records(broker)
    before = [record for record in sent if record.kind == SUB_BEFORE]
    after = [record for record in sent if record.kind == SUB_AFTER]
    assert len(before) == len(after) == 5
    assert {record.request_id for record in before} == {record.request_id for record in after}
    assert {record.group for record in sent} == {"billing"}
    assert sorted(record.retry_times or 0 for record in before) == [0, 0, 0, 1, 1]
    outcomes = sorted(record.context_code or 0 for record in after)
    assert outcomes == [ConsumeOutcome.SUCCESS] * 3 + [ConsumeOutcome.EXCEPTION, ConsumeOutcome.FAILED]
    assert sorted(bool(record.is_success) for record in after) == [False, False, True, True, True]


async def test_a_batch_leaves_two_records_for_each_message_that_may_be_traced() -> None:
    sent: list[TraceRecord] = []

    async def listen(batch: list[Message]) -> None: ...

    def record(*given: TraceRecord) -> None:
        sent.extend(given)

    trace = ConsumeTrace(group="billing", client_id="me@1", record=record, clock=lambda: 7, timeout_ms=1000)
    listener = trace.around({"orders": Listener("orders", listen, is_async=True, batch_size=3)})["orders"]
    properties: list[dict[str, Any]] = [{"KEYS": "k1 k2", "MSG_REGION": "east"}, {"TRACE_ON": "false"}, {}]
    batch = [
        Message(topic="orders", body=b"", id=f"{number}", properties=given) for number, given in enumerate(properties)
    ]
    await listener.call(batch)
    await eventually(lambda: len(sent) == 4)
    assert [(one.kind, one.message_id) for one in sent] == [
        (SUB_BEFORE, "0"),
        (SUB_BEFORE, "2"),
        (SUB_AFTER, "0"),
        (SUB_AFTER, "2"),
    ]
    assert (sent[0].keys, sent[0].region_id, sent[0].client_host, sent[0].timestamp_ms) == ("k1 k2", "east", "me@1", 7)


@pytest.mark.parametrize(
    ("error", "cost_s", "outcome", "is_success"),
    [
        pytest.param(None, 0.9, ConsumeOutcome.SUCCESS, True, id="within the time-out"),
        pytest.param(None, 1.0, ConsumeOutcome.TIME_OUT, True, id="late, and consumed all the same"),
        pytest.param(Later(), 0.9, ConsumeOutcome.FAILED, False, id="to consume later"),
        pytest.param(Later(), 1.0, ConsumeOutcome.TIME_OUT, False, id="late, and to consume later"),
        pytest.param(ValueError(), 1.0, ConsumeOutcome.EXCEPTION, False, id="late, and an exception"),
    ],
)
async def test_the_time_out_of_a_batch_is_that_of_its_call(
    error: Exception | None,
    cost_s: float,
    outcome: ConsumeOutcome,
    is_success: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[TraceRecord] = []
    now_s = 0.0

    async def listen(batch: list[Message]) -> None:
        nonlocal now_s
        now_s += cost_s
        if error is not None:
            raise error

    def record(*given: TraceRecord) -> None:
        sent.extend(given)

    monkeypatch.setattr(time, "perf_counter", lambda: now_s)
    trace = ConsumeTrace(group="billing", client_id="me@1", record=record, clock=lambda: 7, timeout_ms=1000)
    listener = trace.around({"orders": Listener("orders", listen, is_async=True, batch_size=2)})["orders"]
    with contextlib.suppress(Later, ValueError):
        await listener.call([Message(topic="orders", body=b"", id=f"{number}") for number in range(2)])
    await eventually(lambda: len(sent) == 4)
    ended = [one for one in sent if one.kind == SUB_AFTER]
    assert {(one.context_code, one.is_success, one.cost_ms) for one in ended} == {
        (outcome, is_success, round(cost_s * 500))
    }


async def test_a_trace_that_no_broker_takes_costs_no_message(broker: MemoryBroker, members: Members) -> None:
    seen: list[str] = []

    async def listen(message: Message) -> None:
        seen.append(message.text)

    broker.put("orders", b"a", b"b")
    member = await members.start(listen, trace=True, trace_topic="missing")
    await eventually(lambda: len(seen) == 2)
    await members.stop(member)
