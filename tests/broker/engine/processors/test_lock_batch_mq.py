"""Queue locks over the wire, and what an ordered group's own retries become."""

from __future__ import annotations

import pytest

from broker.engine.processors.lock_batch_mq import LockBatchMQ, UnlockBatchMQ
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.queue_locks import LockRequest, read_locked, write_lock_request
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from tests.support.broker_parts import BrokerParts, Wire

QUEUES = [MessageQueue("orders", "broker-a", queue_id) for queue_id in range(2)]
TORN = {
    "no body": b"",
    "no client": b'{"consumerGroup":"billing","mqSet":[]}',
    "no group": b'{"clientId":"a","mqSet":[]}',
    "a queue without id": b'{"clientId":"a","consumerGroup":"billing","mqSet":[{"topic":"orders"}]}',
    "no list": b'{"clientId":"a","consumerGroup":"billing","mqSet":7}',
}


@pytest.fixture
async def parts(tmp_path):
    parts = BrokerParts(tmp_path / "store")
    yield parts
    parts.close()


def lock(parts: BrokerParts, client_id: str, queues=QUEUES, wire: Wire | None = None) -> list[MessageQueue]:
    body = write_lock_request(LockRequest(client_id=client_id, consumer_group="billing", queues=queues))
    answer = parts.ask(LockBatchMQ(parts.locks), Command(code=RequestCode.LOCK_BATCH_MQ, body=body), wire)
    assert answer.code == ResponseCode.SUCCESS
    return read_locked(answer.body)


def unlock(parts: BrokerParts, client_id: str) -> None:
    body = write_lock_request(LockRequest(client_id=client_id, consumer_group="billing", queues=QUEUES))
    answer = parts.ask(UnlockBatchMQ(parts.locks), Command(code=RequestCode.UNLOCK_BATCH_MQ, body=body))
    assert (answer.code, answer.body) == (ResponseCode.SUCCESS, b"")


def send_retry(parts: BrokerParts, **fields: str) -> Command:
    processor = parts.send_message()
    values = {
        "producerGroup": "CLIENT_INNER_PRODUCER",
        "topic": "%RETRY%billing",
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "4",
        "queueId": "0",
        "sysFlag": "0",
        "bornTimestamp": "1700000000000",
        "flag": "0",
        "reconsumeTimes": "1",
        "maxReconsumeTimes": "16",
    }
    return parts.ask(processor, Command(code=RequestCode.SEND_MESSAGE, ext_fields=values | fields, body=b"hello"))


async def test_a_queue_has_one_holder_until_it_unlocks(parts) -> None:
    assert lock(parts, "a", QUEUES[:1]) == QUEUES[:1]
    assert lock(parts, "b") == QUEUES[1:]
    unlock(parts, "a")
    assert lock(parts, "b") == QUEUES


async def test_the_client_id_is_the_holder_whatever_connection_it_asks_on(parts) -> None:
    assert lock(parts, "a") == QUEUES
    assert lock(parts, "a", wire=Wire()) == QUEUES
    assert lock(parts, "b", wire=parts.wire) == []


@pytest.mark.parametrize("body", TORN.values(), ids=TORN.keys())
@pytest.mark.parametrize("processor", [LockBatchMQ, UnlockBatchMQ])
async def test_a_request_that_names_no_holder_is_refused(parts, processor, body) -> None:
    answer = parts.ask(processor(parts.locks), Command(code=RequestCode.LOCK_BATCH_MQ, body=body))
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark
    assert len(parts.locks) == 0


async def test_what_an_ordered_group_sends_to_its_retry_topic_is_a_dead_letter_as_long_as_it_holds_locks(parts) -> None:
    assert send_retry(parts).code == ResponseCode.SUCCESS
    lock(parts, "a")
    assert send_retry(parts).code == ResponseCode.SUCCESS
    unlock(parts, "a")
    assert send_retry(parts).code == ResponseCode.SUCCESS
    ends = {topic: parts.store.max_offset(topic, 0) for topic in ("%RETRY%billing", "%DLQ%billing")}
    assert ends == {"%RETRY%billing": 2, "%DLQ%billing": 1}
