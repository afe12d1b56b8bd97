"""Looking messages up by a key, and the consume queue's entries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.engine.processors.query_consume_queue import QueryConsumeQueue
from broker.engine.processors.query_message import QueryMessage
from broker.engine.store import key_lookup
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.properties import encode_properties
from remoting.wire.stored_message import decode_messages
from remoting.wire.tags import tags_code
from tests.support.broker_parts import BrokerParts
from tests.support.stores import START_MS, draft


@pytest.fixture
async def parts(tmp_path: Path):
    parts = BrokerParts(tmp_path / "store")
    yield parts
    parts.close()


def store(parts: BrokerParts, body: bytes, **properties: str) -> None:
    """One message a second."""
    parts.store.append(draft(body, properties_text=encode_properties(properties)))
    parts.clock.now_ms += 1_000


def query(parts: BrokerParts, key: str, **changes: object) -> Command:
    fields = {"topic": "orders", "key": key, "maxNum": 64, "beginTimestamp": 0, "endTimestamp": 2**62, **changes}
    command = Command(code=RequestCode.QUERY_MESSAGE, ext_fields={name: str(value) for name, value in fields.items()})
    return parts.ask(QueryMessage(parts.store), command)


def test_messages_of_a_deleted_topic_are_found_where_they_are_asked_for(parts) -> None:
    store(parts, b"before", KEYS="red")
    parts.store.delete_topic("orders")
    store(parts, b"after", KEYS="red")
    assert found(query(parts, "red")) == [b"after"]
    assert found(query(parts, "red", withDeleted="true")) == [b"before", b"after"]


def found(answer: Command) -> list[bytes]:
    assert answer.code == ResponseCode.SUCCESS
    return [message.body for message in decode_messages(answer.body)]


@pytest.mark.parametrize("key", ["U1", "red", "blue"], ids=["unique key", "first key", "second key"])
def test_a_message_is_found_by_its(parts, key) -> None:
    store(parts, b"one", UNIQ_KEY="U1", KEYS="red blue")
    store(parts, b"two", UNIQ_KEY="U2", KEYS="green")

    answer = query(parts, key)

    assert found(answer) == [b"one"]
    last = decode_messages(parts.store.record_at(parts.store.queue_entry("orders", 0, 1)[0]))[0]
    assert answer.ext_fields == {
        "indexLastUpdateTimestamp": str(last.store_timestamp_ms),
        "indexLastUpdatePhyoffset": str(last.commit_log_offset),
    }


def test_the_newest_messages_of_a_key_come_in_the_order_of_the_log(parts) -> None:
    for number in range(5):
        store(parts, b"%d" % number, KEYS="red")
    assert found(query(parts, "red", maxNum=3)) == [b"2", b"3", b"4"]


def test_a_unique_key_finds_all_its_messages_whatever_the_number_asked_for(parts) -> None:
    for number in range(3):
        store(parts, b"%d" % number, UNIQ_KEY="U1")
    assert found(query(parts, "U1", maxNum=1, _UNIQUE_KEY_QUERY="true")) == [b"0", b"1", b"2"]


def test_both_ends_of_the_time_range_count(parts) -> None:
    for number in range(5):
        store(parts, b"%d" % number, KEYS="red")
    answer = query(parts, "red", beginTimestamp=START_MS + 1_000, endTimestamp=START_MS + 3_000)
    assert found(answer) == [b"1", b"2", b"3"]


@pytest.mark.parametrize(
    "changes",
    [{"key": "missing"}, {"topic": "missing"}, {"beginTimestamp": 2**61}, {"endTimestamp": 0}, {"maxNum": 0}],
    ids=["no such key", "no such topic", "too late", "too early", "none wanted"],
)
def test_nothing_is_found_for(parts, changes) -> None:
    store(parts, b"one", KEYS="red")
    assert query(parts, **{"key": "red", **changes}).code == ResponseCode.QUERY_NOT_FOUND


def test_an_answer_fits_into_a_frame(parts, monkeypatch) -> None:
    monkeypatch.setattr(key_lookup, "ANSWER_BYTES_MAX", 3_000)
    for number in range(4):
        store(parts, b"%d" % number * 1_000, KEYS="red")
    assert [body[:1] for body in found(query(parts, "red"))] == [b"2", b"3"]


def test_a_query_without_its_fields_is_refused(parts) -> None:
    command = Command(code=RequestCode.QUERY_MESSAGE, ext_fields={"topic": "orders", "key": "red"})
    assert parts.ask(QueryMessage(parts.store), command).code == ResponseCode.SYSTEM_ERROR


# consume queue


def entries(parts: BrokerParts, **changes: object) -> Command:
    fields = {"topic": "orders", "queueId": 0, "index": 0, "count": 10, **changes}
    command = Command(
        code=RequestCode.QUERY_CONSUME_QUEUE, ext_fields={name: str(value) for name, value in fields.items()}
    )
    return parts.ask(QueryConsumeQueue(parts.members, parts.store), command)


def test_queue_entries_are_told_from_an_index_on(parts) -> None:
    for number in range(4):
        parts.store.append(draft(b"%d" % number, tags="paid"))
    parts.join("billing", SubscriptionData(topic="orders", sub_string="paid"))

    answer = entries(parts, index=1, count=2, consumerGroup="billing")

    body = json.loads(answer.body)
    places = [parts.store.queue_entry("orders", 0, number)[:2] for number in (1, 2)]
    assert [(one["physicOffset"], one["physicSize"]) for one in body["queueData"]] == places
    assert {one["tagsCode"] for one in body["queueData"]} == {tags_code("paid")}
    assert (body["minQueueIndex"], body["maxQueueIndex"]) == (0, 4)
    assert body["subscriptionData"]["subString"] == "paid"


def test_a_group_that_is_not_online_is_named(parts) -> None:
    parts.store.append(draft())
    assert json.loads(entries(parts, consumerGroup="nobody").body)["filterData"] == "nobody@orders is not online!"


def test_an_index_beyond_the_queue_has_no_entries(parts) -> None:
    parts.store.append(draft())
    answer = entries(parts, index=7)
    assert (answer.code, answer.body) == (ResponseCode.SUCCESS, b"")
    assert "Index 7 of 0@orders" in answer.remark


def test_an_unknown_queue_has_no_entries(parts) -> None:
    assert entries(parts, topic="missing").code == ResponseCode.SYSTEM_ERROR
