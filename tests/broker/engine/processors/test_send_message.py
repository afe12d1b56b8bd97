"""Sending: the order of the checks, what is stored, when the answer goes out."""

from __future__ import annotations

import pytest

from broker.engine.store.errors import RecordRefused, StoreFailed, StoreFull
from remoting.wire.batch import encode_batch
from remoting.wire.bodies.topics import PERM_READ, TopicConfig
from remoting.wire.codes import V3_4_9, RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.message_id import decode_offset_message_id
from remoting.wire.names import SCHEDULE_TOPIC
from remoting.wire.properties import encode_properties
from remoting.wire.tags import tags_code
from tests.support.broker_parts import BrokerParts, save_topic
from tests.support.stores import bodies, read_queue
from tests.support.waiting import eventually

V2_LETTERS = "abcdefghijklmn"
V1_NAMES = (
    *("producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag", "bornTimestamp"),
    *("flag", "properties", "reconsumeTimes", "unitMode", "maxReconsumeTimes", "batch", "bname"),
)
VALUES = {
    "producerGroup": "producers",
    "topic": "orders",
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": "4",
    "queueId": "1",
    "sysFlag": "0",
    "bornTimestamp": "1700000000000",
    "flag": "7",
    "properties": "",
}


def send(body: bytes = b"hello", code: int = RequestCode.SEND_MESSAGE_V2, properties: dict | None = None, **values):
    fields = {**VALUES, **{name: str(value) for name, value in values.items()}}
    if properties is not None:
        fields["properties"] = encode_properties(properties)
    if code != RequestCode.SEND_MESSAGE:
        fields = {V2_LETTERS[V1_NAMES.index(name)]: value for name, value in fields.items()}
    return Command(code=code, opaque=9, version=V3_4_9, ext_fields=fields, body=body)


@pytest.fixture
async def parts(tmp_path):
    parts = BrokerParts(tmp_path / "store")
    yield parts
    parts.close()


@pytest.fixture
def processor(parts):
    return parts.send_message()


@pytest.mark.parametrize("code", [RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2])
def test_send_stores_the_message_and_says_where(parts, processor, code):
    answer = parts.ask(processor, send(code=code, properties={"UNIQ_KEY": "U1", "TAGS": "paid", "WAIT": "true"}))

    (message,) = read_queue(parts.store, "orders", 1)
    assert (message.body, message.flag, message.born_timestamp_ms) == (b"hello", 7, 1_700_000_000_000)
    assert message.born_host == parts.wire.peer_host
    assert message.store_host == ("127.0.0.1", 10911)
    assert answer.code == ResponseCode.SUCCESS
    assert answer.opaque == 9
    assert answer.ext_fields == {
        "msgId": message.offset_message_id,
        "queueId": "1",
        "queueOffset": "0",
        "transactionId": "U1",
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
    }
    assert parts.store.queue_entry("orders", 1, 0)[2] == tags_code("paid")


def test_send_adds_the_brokers_properties_and_takes_away_the_reserved_one(parts, processor):
    parts.ask(processor, send(properties={"WAIT": "true", "colour": "grün", "POP_CK": "x"}))

    (message,) = read_queue(parts.store, "orders", 1)
    unique_key = message.properties["UNIQ_KEY"]
    assert len(unique_key) == 32
    assert message.properties == {
        "WAIT": "true",
        "colour": "grün",
        "CLUSTER": "local",
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
        "UNIQ_KEY": unique_key,
    }


def test_send_creates_an_unknown_topic_from_its_template(parts, processor):
    assert parts.ask(processor, send(topic="fresh")).code == ResponseCode.SUCCESS
    assert parts.topics.find("fresh").write_queue_nums == 4


def test_send_picks_a_queue_where_the_sender_leaves_it_to_the_broker(parts, processor):
    queues = {parts.ask(processor, send(queueId=-1)).ext_fields["queueId"] for _ in range(50)}

    assert queues == {"0", "1", "2", "3"}


# what is wrong with it, fields and properties, code, a word of the remark
REFUSALS = {
    "an illegal topic name": ({"topic": "or ders"}, {}, ResponseCode.INVALID_PARAMETER, "or ders"),
    "a topic name that is too long": ({"topic": "t" * 128}, {}, ResponseCode.INVALID_PARAMETER, "128"),
    "a topic of the broker's own": ({"topic": SCHEDULE_TOPIC}, {}, ResponseCode.NO_PERMISSION, "forbidden"),
    "a topic without a template": ({"topic": "x", "defaultTopic": "?"}, {}, ResponseCode.TOPIC_NOT_EXIST, "apply"),
    "a queue beyond the last": ({"queueId": 4}, {}, ResponseCode.INVALID_PARAMETER, "queueId[4]"),
    "a retry of an unknown group": (
        {"topic": "%RETRY%no group"},
        {},
        ResponseCode.INVALID_PARAMETER,
        "no group",
    ),
    "the timers' own topic": ({"topic": "rmq_sys_wheel_timer"}, {}, ResponseCode.NO_PERMISSION, "forbidden"),
    "a time too far away": ({}, {"TIMER_DELAY_SEC": "259201"}, ResponseCode.MESSAGE_ILLEGAL, "max delay 259200000ms"),
    "a time that is no number": ({}, {"TIMER_DELIVER_MS": "noon"}, ResponseCode.MESSAGE_ILLEGAL, "noon"),
    "a delete marker too late": (
        {},
        {"TIMER_DELIVER_MS": "1000", "TIMER_DEL_UNIQKEY": "orders+1"},
        ResponseCode.MESSAGE_ILLEGAL,
        "its time was",
    ),
    "a level that is no number": ({}, {"DELAY": "soon"}, ResponseCode.MESSAGE_ILLEGAL, "soon"),
    "long properties": ({}, {"k": "v" * 32_767}, ResponseCode.MESSAGE_ILLEGAL, "properties"),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS.keys())
def test_send_refuses(parts, processor, case):
    fields, properties, code, word = case
    save_topic(parts.topics, TopicConfig(topic_name="orders", read_queue_nums=4, write_queue_nums=4))

    answer = parts.ask(processor, send(properties=properties, **fields))

    assert answer.code == code
    assert word in answer.remark
    assert parts.store.max_commit_log_offset == 0


@pytest.mark.parametrize("is_ordered", [True, False])
def test_send_to_a_broker_without_write_permission_refuses_ordered_topics_only(parts, processor, is_ordered):
    save_topic(parts.topics, TopicConfig(topic_name="orders", order=is_ordered))
    parts.config.perm = PERM_READ
    expected = ResponseCode.NO_PERMISSION if is_ordered else ResponseCode.SUCCESS
    assert parts.ask(processor, send()).code == expected


def test_send_to_a_topic_without_queues_to_write_to_says_so(parts, processor):
    save_topic(parts.topics, TopicConfig(topic_name="orders", read_queue_nums=4, write_queue_nums=0))
    answer = parts.ask(processor, send(queueId=-1))
    assert (answer.code, "no queues" in answer.remark) == (ResponseCode.NO_PERMISSION, True)


def test_send_refuses_an_empty_body(parts, processor):
    answer = parts.ask(processor, send(b""))

    assert (answer.code, answer.remark) == (ResponseCode.MESSAGE_ILLEGAL, "the message body is empty")
    assert parts.store.max_commit_log_offset == 0


# two things are wrong: the first of RocketMQ's order is answered
ORDER = {
    "the name before the template": ({"topic": "a b", "defaultTopic": "?"}, ResponseCode.INVALID_PARAMETER),
    "the protected topic before its queue": ({"topic": SCHEDULE_TOPIC, "queueId": 99}, ResponseCode.NO_PERMISSION),
    "the unknown topic before its queue": (
        {"topic": "x", "defaultTopic": "?", "queueId": 99},
        ResponseCode.TOPIC_NOT_EXIST,
    ),
}


@pytest.mark.parametrize("case", ORDER.values(), ids=ORDER.keys())
def test_send_checks_in_order(parts, processor, case):
    fields, code = case

    assert parts.ask(processor, send(b"", **fields)).code == code


def test_send_refuses_a_body_over_the_limit(tmp_path):
    parts = BrokerParts(tmp_path / "small", body_bytes_max=10)
    processor = parts.send_message()

    assert parts.ask(processor, send(b"x" * 10)).code == ResponseCode.SUCCESS
    assert parts.ask(processor, send(b"x" * 11)).code == ResponseCode.MESSAGE_ILLEGAL
    parts.close()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoreFull("no room"), ResponseCode.SERVICE_NOT_AVAILABLE),
        (StoreFailed("the disk failed"), ResponseCode.SERVICE_NOT_AVAILABLE),
        (RecordRefused("too large"), ResponseCode.MESSAGE_ILLEGAL),
    ],
    ids=["full", "failed", "refused"],
)
def test_send_answers_what_the_store_says(parts, processor, monkeypatch, error, code):
    def refuse(_):
        raise error

    monkeypatch.setattr(parts.store, "append_batch", refuse)
    answer = parts.ask(processor, send())

    assert answer.code == code
    assert str(error) in answer.remark


# when the answer goes out


class SlowFlush:
    """Keeps the callbacks until the test says that the disk is done."""

    def __init__(self, store, monkeypatch) -> None:
        self.waiting = []
        monkeypatch.setattr(store, "when_flushed", lambda end, callback: self.waiting.append((end, callback)))

    def done(self, error=None) -> None:
        for _, callback in self.waiting:
            callback(error)


async def test_send_is_answered_when_the_disk_has_it(parts, processor, monkeypatch):
    disk = SlowFlush(parts.store, monkeypatch)

    assert parts.ask(processor, send(properties={"WAIT": "true"})) is None
    assert disk.waiting[0][0] == parts.store.max_commit_log_offset
    disk.done()
    assert [command.code for command in parts.wire.sent] == [ResponseCode.SUCCESS]


def test_send_that_does_not_wait_is_answered_at_once(parts, processor, monkeypatch):
    SlowFlush(parts.store, monkeypatch)

    assert parts.ask(processor, send(properties={"WAIT": "false"})).code == ResponseCode.SUCCESS


async def test_send_is_not_acknowledged_when_the_disk_failed(parts, processor, monkeypatch):
    disk = SlowFlush(parts.store, monkeypatch)
    parts.ask(processor, send())
    disk.done(StoreFailed("the disk failed"))

    assert [command.code for command in parts.wire.sent] == [ResponseCode.SERVICE_NOT_AVAILABLE]


def test_send_oneway_is_stored_and_nothing_goes_out_later(parts, processor, monkeypatch):
    disk = SlowFlush(parts.store, monkeypatch)
    command = send()
    command.flag = 2
    parts.ask(processor, command)

    assert bodies(parts.store, "orders", 1) == [b"hello"]
    assert disk.waiting == []
    assert parts.wire.sent == []


# delays


def test_send_with_a_delay_level_waits_in_the_schedule(parts, processor):
    answer = parts.ask(processor, send(properties={"DELAY": "3", "TAGS": "paid", "TIMER_DELAY_MS": "5"}))

    (message,) = read_queue(parts.store, SCHEDULE_TOPIC, 2)
    assert answer.ext_fields["queueId"] == "1"
    assert decode_offset_message_id(answer.ext_fields["msgId"])[1] == message.commit_log_offset
    assert message.properties["REAL_TOPIC"] == "orders"
    assert message.properties["REAL_QID"] == "1"
    assert "TIMER_DELAY_MS" not in message.properties
    assert parts.store.queue_entry(SCHEDULE_TOPIC, 2, 0)[2] == parts.clock() + 10_000
    assert bodies(parts.store, "orders", 1) == []


@pytest.mark.parametrize(("level", "queue_id"), [("18", 17), ("19", 17), ("999", 17)])
def test_send_above_the_highest_level_waits_at_the_highest(parts, processor, level, queue_id):
    parts.ask(processor, send(properties={"DELAY": level}))

    (message,) = read_queue(parts.store, SCHEDULE_TOPIC, queue_id)
    assert message.properties["DELAY"] == "18"


@pytest.mark.parametrize("level", ["0", "-1", ""])
def test_send_with_a_level_that_is_none_is_not_delayed(parts, processor, level):
    parts.ask(processor, send(properties={"DELAY": level}))

    assert bodies(parts.store, "orders", 1) == [b"hello"]


# batches


BATCH = encode_batch([(1, b"one", {"UNIQ_KEY": "U1", "TAGS": "a"}), (2, b"two", {"UNIQ_KEY": "U2"})])


@pytest.mark.parametrize("code", [RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE])
def test_send_batch_stores_all_side_by_side(parts, processor, code):
    parts.ask(processor, send())
    answer = parts.ask(processor, send(BATCH, code, {"WAIT": "true", "UNIQ_KEY": "U0"}, batch="true"))

    messages = read_queue(parts.store, "orders", 1)[1:]
    assert [message.body for message in messages] == [b"one", b"two"]
    assert [message.flag for message in messages] == [1, 2]
    assert messages[0].properties == {"UNIQ_KEY": "U1", "TAGS": "a"}
    assert answer.ext_fields["queueOffset"] == "1"
    assert answer.ext_fields["msgId"] == ",".join(message.offset_message_id for message in messages)
    assert parts.store.queue_entry("orders", 1, 1)[2] == tags_code("a")


def test_send_without_the_flag_is_one_message_whatever_its_code(parts, processor):
    parts.ask(processor, send(BATCH, RequestCode.SEND_BATCH_MESSAGE))

    assert bodies(parts.store, "orders", 1) == [BATCH]


BAD_BATCHES = {
    "cut off": (BATCH[:-3], {}, "orders", "batch"),
    "empty": (b"", {}, "orders", "no message"),
    "delayed": (BATCH, {"DELAY": "3"}, "orders", "delayed"),
    "to a retry topic": (BATCH, {}, "%RETRY%g", "retry"),
}


@pytest.mark.parametrize("case", BAD_BATCHES.values(), ids=BAD_BATCHES.keys())
def test_send_batch_refuses_one_that_is(parts, processor, case):
    body, properties, topic, word = case
    answer = parts.ask(processor, send(body, properties=properties, topic=topic, batch="true", queueId=0))

    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert word in answer.remark
    assert parts.store.max_commit_log_offset == 0


# retries that a consumer sends itself

# reconsume times, limit of the header, client version, is it dead?
LIMITS = {
    "up to the header's limit": (3, 3, V3_4_9, False),
    "beyond the header's limit": (4, 3, V3_4_9, True),
    "an old client's header does not count": (4, 3, V3_4_9 - 1, False),
    "up to the group's limit": (16, "", V3_4_9, False),
    "beyond the group's limit": (17, "", V3_4_9, True),
}


@pytest.mark.parametrize("case", LIMITS.values(), ids=LIMITS.keys())
def test_send_to_a_retry_topic(parts, processor, case):
    times, limit, version, is_dead = case
    command = send(
        topic="%RETRY%g", queueId=0, reconsumeTimes=times, maxReconsumeTimes=limit, properties={"RETRY_TOPIC": "orders"}
    )
    command.version = version
    assert parts.ask(processor, command).code == ResponseCode.SUCCESS

    topic, other = ("%DLQ%g", "%RETRY%g") if is_dead else ("%RETRY%g", "%DLQ%g")
    (message,) = read_queue(parts.store, topic, 0)
    assert message.reconsume_times == times
    assert bodies(parts.store, other, 0) == []
    if is_dead:
        assert message.properties["DELAY"] == "-1"
        dead = parts.topics.find("%DLQ%g")
        assert (dead.write_queue_nums, dead.perm) == (1, 6)


def test_send_to_a_retry_topic_refuses_an_unknown_group(tmp_path):
    parts = BrokerParts(tmp_path / "closed", creates_groups=False)
    processor = parts.send_message()
    answer = parts.ask(processor, send(topic="%RETRY%g", queueId=0))

    assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    parts.close()


def test_send_to_an_unknown_retry_topic_creates_it_where_topics_are_not(tmp_path):
    parts = BrokerParts(tmp_path / "closed", creates_topics=False)
    processor = parts.send_message()

    assert parts.ask(processor, send(topic="%RETRY%g", queueId=0)).code == ResponseCode.SUCCESS
    assert parts.topics.find("%RETRY%g").write_queue_nums == 1
    parts.close()


def test_send_refuses_a_header_without_its_fields(parts, processor):
    answer = parts.ask(processor, Command(code=RequestCode.SEND_MESSAGE_V2, ext_fields={"b": "orders"}))

    assert answer.code == ResponseCode.SYSTEM_ERROR


async def test_send_hears_of_a_flush_that_takes_too_long_and_where_its_message_is(parts, processor, monkeypatch):
    monkeypatch.setattr("broker.engine.sending.flush_waiting.FLUSH_TIMEOUT_S", 0.02)
    monkeypatch.setattr(parts.store, "when_flushed", lambda end, callback: None)
    parts.ask(processor, send(properties={"UNIQ_KEY": "U1"}))
    await eventually(lambda: parts.wire.sent)

    (answer,) = parts.wire.sent
    assert answer.code == ResponseCode.FLUSH_DISK_TIMEOUT
    (message,) = read_queue(parts.store, "orders", 1)
    assert answer.ext_fields["msgId"] == message.offset_message_id
    assert answer.ext_fields["queueOffset"] == "0"


async def test_send_is_refused_while_too_many_wait_for_the_disk_and_nothing_is_stored(parts, processor, monkeypatch):
    monkeypatch.setattr("broker.engine.sending.flush_waiting.WAITING_SENDS_MAX", 1)
    monkeypatch.setattr(parts.store, "when_flushed", lambda end, callback: None)
    assert parts.ask(processor, send(b"waits")) is None
    refused = parts.ask(processor, send(b"refused"))

    assert (refused.code, refused.remark) == (
        ResponseCode.SYSTEM_BUSY,
        "[OVERLOAD]system busy, start flow control for a while",
    )
    assert [message.body for message in read_queue(parts.store, "orders", 1)] == [b"waits"]
