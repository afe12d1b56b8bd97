from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from remoting.client.instance import ClientInstance
from remoting.client.outgoing import Message
from remoting.client.producer import Producer
from remoting.client.trace import TRACE_GROUP, TraceDispatcher, TraceLimits
from remoting.wire.bodies.trace import MessageType, TraceRecord, read_trace
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.compression import decompress
from remoting.wire.names import TRACE_TOPIC
from tests.support.memory_broker import MemoryBroker
from tests.support.waiting import eventually

# Records leave when they are enough or the client closes, and however long a busy machine takes for them.
PATIENT = TraceLimits(flush_interval_s=600, close_timeout_s=60, send_timeout_ms=60_000)


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[MemoryBroker]:
    async with MemoryBroker() as broker:
        broker.create_topic(TRACE_TOPIC, 1)
        broker.create_topic("orders", 1)
        yield broker


@pytest_asyncio.fixture
async def instance(broker: MemoryBroker) -> AsyncIterator[ClientInstance]:
    instance = ClientInstance(broker.namesrv)
    instance.start()
    yield instance
    await instance.close()


def traced(broker: MemoryBroker) -> list[TraceRecord]:
    (queue,) = [queue for queue in broker.queues if queue.topic == TRACE_TOPIC]
    return [
        record for message in broker.queues[queue] for record in read_trace(decompress(message.body, message.sys_flag))
    ]


def records(count: int, keys: str | None = None) -> list[TraceRecord]:
    return [TraceRecord(kind="SubBefore", message_id=f"ID{number}", keys=keys) for number in range(count)]


def hang(request: Command) -> Command | None:
    """Answers nothing, as if the request were oneway."""
    request.flag |= 2
    return None


async def test_each_stored_message_is_traced_with_its_place_and_found_by_its_id_and_keys(
    broker: MemoryBroker, instance: ClientInstance
) -> None:
    trace = TraceDispatcher(instance, limits=PATIENT)
    producer = Producer((), "senders", instance=instance, trace=trace.record)
    await trace.start()
    await producer.start()
    sent = await producer.send("orders", b"body", tags="paid", keys=["k1", "k2"])
    delayed = await producer.send("orders", b"later", delay_level=1)
    await producer.close()
    await trace.close()
    first, second = traced(broker)
    assert (first.kind, first.group, first.topic, first.message_id) == ("Pub", "senders", "orders", sent.message_id)
    assert (first.tags, first.keys, first.store_host, first.body_length) == ("paid", "k1 k2", broker.address, 4)
    assert (first.offset_message_id, first.is_success) == (sent.offset_message_id, True)
    assert (first.region_id, first.message_type) == ("DefaultRegion", MessageType.NORMAL)
    assert (second.message_id, second.message_type) == (delayed.message_id, MessageType.DELAYED)
    (queue,) = [queue for queue in broker.queues if queue.topic == TRACE_TOPIC]
    (message,) = broker.queues[queue]
    assert message.keys == [sent.message_id, "k1", "k2", delayed.message_id]
    assert trace.dropped_count == 0


async def test_a_batch_is_traced_message_by_message(broker: MemoryBroker, instance: ClientInstance) -> None:
    broker.faults[RequestCode.SEND_BATCH_MESSAGE] = lambda request: response(
        request, ResponseCode.SUCCESS, ext_fields={"msgId": "A,B", "queueId": "0", "queueOffset": "5"}
    )
    seen: list[TraceRecord] = []
    producer = Producer((), "senders", instance=instance, trace=seen.append)
    await producer.start()
    results = await producer.send_batch("orders", [Message(b"1", keys="k1"), Message(b"22")])
    await producer.close()
    assert [record.message_id for record in seen] == [result.message_id for result in results]
    assert [(record.keys, record.body_length, record.offset_message_id) for record in seen] == [
        ("k1", 1, "A"),
        (None, 2, "B"),
    ]


async def test_a_broker_that_traces_nothing_gets_no_trace(broker: MemoryBroker, instance: ClientInstance) -> None:
    fields = {"msgId": "A", "queueId": "0", "queueOffset": "5", "TRACE_ON": "false"}
    broker.faults[RequestCode.SEND_MESSAGE_V2] = lambda request: response(
        request, ResponseCode.SUCCESS, ext_fields=fields
    )
    seen: list[TraceRecord] = []
    producer = Producer((), "senders", instance=instance, trace=seen.append)
    await producer.start()
    await producer.send("orders", b"x")
    await producer.close()
    assert seen == []


async def test_records_leave_together_and_after_the_interval_at_the_latest(
    broker: MemoryBroker, instance: ClientInstance
) -> None:
    trace = TraceDispatcher(instance, limits=replace(PATIENT, records_max=10, flush_interval_s=0.05))
    await trace.start()
    trace.record(*records(25))
    await eventually(lambda: len(traced(broker)) == 25)
    trace.record(*records(1))
    await eventually(lambda: len(traced(broker)) == 26)
    sends = [fields for code, fields in broker.seen if code == RequestCode.SEND_MESSAGE_V2]
    assert len(sends) == 4
    assert {fields["a"] for fields in sends} == {TRACE_GROUP}
    await trace.close()


async def test_one_message_holds_no_more_than_its_bytes_and_keys(
    broker: MemoryBroker, instance: ClientInstance
) -> None:
    for limits in (replace(PATIENT, bytes_max=100), replace(PATIENT, keys_chars_max=20)):
        before = len(broker.queues[next(queue for queue in broker.queues if queue.topic == TRACE_TOPIC)])
        trace = TraceDispatcher(instance, limits=limits)
        trace.record(*records(4, keys="ten-chars!"))
        await trace.start()
        await trace.close()
        after = len(broker.queues[next(queue for queue in broker.queues if queue.topic == TRACE_TOPIC)])
        assert 2 <= after - before <= 4


async def test_what_finds_no_room_or_no_broker_is_dropped_and_counted(
    broker: MemoryBroker, instance: ClientInstance
) -> None:
    limits = TraceLimits(waiting_max=5, close_timeout_s=0.2)
    trace = TraceDispatcher(instance, limits=limits)
    trace.record(*records(3))
    trace.record(*records(4))
    assert trace.dropped_count == 2
    broker.faults[RequestCode.SEND_MESSAGE_V2] = lambda request: response(request, ResponseCode.MESSAGE_ILLEGAL, "no")
    await trace.start()
    await trace.close()
    assert trace.dropped_count == 7


async def test_a_broker_that_hangs_holds_up_the_end_no_longer_than_is_stated(
    broker: MemoryBroker, instance: ClientInstance
) -> None:
    broker.faults[RequestCode.SEND_MESSAGE_V2] = hang
    trace = TraceDispatcher(instance, limits=TraceLimits(close_timeout_s=0.1, records_max=1, send_timeout_ms=60_000))
    await trace.start()
    trace.record(*records(3))
    async with asyncio.timeout(60):
        await trace.close()
    assert trace.dropped_count == 3


async def test_closing_that_is_cancelled_unregisters_and_counts_what_is_dropped(
    broker: MemoryBroker, instance: ClientInstance
) -> None:
    broker.faults[RequestCode.SEND_MESSAGE_V2] = hang
    trace = TraceDispatcher(instance, limits=TraceLimits(records_max=1, send_timeout_ms=60_000))
    await trace.start()
    trace.record(*records(3))
    await eventually(lambda: RequestCode.SEND_MESSAGE_V2 in [code for code, _ in broker.seen])
    closing = asyncio.create_task(trace.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert trace.dropped_count == 3
    assert RequestCode.UNREGISTER_CLIENT in [code for code, _ in broker.seen]
