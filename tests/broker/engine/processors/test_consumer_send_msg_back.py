"""Sending back: the order of the checks, the way of a failing message into the dead letters."""

from __future__ import annotations

import pytest

from broker.engine.processors.consumer_send_msg_back import PROPERTIES_RESERVED_BYTES, ConsumerSendMsgBack
from broker.engine.store.errors import StoreFailed, StoreFull
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.topics import PERM_READ, TopicConfig
from remoting.wire.codes import V3_4_9, RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.failures import FailureReason
from remoting.wire.names import SCHEDULE_TOPIC
from tests.support.broker_parts import BrokerParts, save_group, save_topic
from tests.support.failure_reasons import read_reason
from tests.support.stores import draft, read_queue

RETRY, DEAD = "%RETRY%billing", "%DLQ%billing"


def send_back(commit_log_offset: int, version: int = V3_4_9, **fields) -> Command:
    values = {"offset": commit_log_offset, "group": "billing", "delayLevel": 0, "originTopic": "orders"}
    texts = {name: str(value) for name, value in (values | fields).items()}
    return Command(code=RequestCode.CONSUMER_SEND_MSG_BACK, opaque=3, version=version, ext_fields=texts)


@pytest.fixture
async def parts(tmp_path):
    parts = BrokerParts(tmp_path / "store")
    yield parts
    parts.close()


def processor_of(parts) -> ConsumerSendMsgBack:
    return ConsumerSendMsgBack(
        topics=parts.topics, groups=parts.groups, store=parts.store, accepting=parts.accepting, config=parts.config
    )


@pytest.fixture
def processor(parts):
    return processor_of(parts)


def test_send_back_waits_ten_seconds_the_first_time(parts, processor):
    stored = parts.store.append(draft(b"bad", queue_id=2, tags="paid", keys="k", flag=5, unique_key="U1"))
    original = parts.store.message_at(stored.commit_log_offset)
    answer = parts.ask(processor, send_back(stored.commit_log_offset))

    assert (answer.code, answer.ext_fields) == (ResponseCode.SUCCESS, {})
    (message,) = read_queue(parts.store, SCHEDULE_TOPIC, 2)
    assert (message.body, message.flag, message.reconsume_times) == (b"bad", 5, 1)
    assert message.born_host == original.born_host
    assert message.properties == {
        "TAGS": "paid",
        "KEYS": "k",
        "UNIQ_KEY": "U1",
        "RETRY_TOPIC": "orders",
        "ORIGIN_MESSAGE_ID": original.offset_message_id,
        "WAIT": "false",
        "DELAY": "3",
        "REAL_TOPIC": RETRY,
        "REAL_QID": "0",
    }


def test_send_back_keeps_the_first_topic_and_the_first_id(parts, processor):
    text = "RETRY_TOPIC\x01first\x02ORIGIN_MESSAGE_ID\x01ID\x02DELAY\x013\x02"
    stored = parts.store.append(draft(topic=RETRY, properties_text=text, reconsume_times=1))
    parts.ask(processor, send_back(stored.commit_log_offset))

    (message,) = read_queue(parts.store, SCHEDULE_TOPIC, 3)
    assert message.properties["RETRY_TOPIC"] == "first"
    assert message.properties["ORIGIN_MESSAGE_ID"] == "ID"
    assert message.reconsume_times == 2


def test_send_back_creates_the_retry_topic_with_as_many_queues_as_the_group_says(parts, processor):
    save_group(parts.groups, SubscriptionGroupConfig(group_name="billing", retry_queue_nums=3))
    offsets = [parts.store.append(draft()).commit_log_offset for _ in range(30)]
    for commit_log_offset in offsets:
        parts.ask(processor, send_back(commit_log_offset))

    topic = parts.topics.find(RETRY)
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (3, 3, 6)
    queues = {message.properties["REAL_QID"] for message in read_queue(parts.store, SCHEDULE_TOPIC, 2)}
    assert queues == {"0", "1", "2"}


# times it failed before, level asked for, level it waits at
LEVELS = {
    "the first failure": (0, 0, 3),
    "the second": (1, 0, 4),
    "the sixteenth": (15, 0, 18),
    "a level of its own": (5, 1, 1),
    "a level above the highest": (0, 40, 18),
}


@pytest.mark.parametrize("case", LEVELS.values(), ids=LEVELS.keys())
def test_send_back_waits_longer_each_time(parts, processor, case):
    times, asked, level = case
    stored = parts.store.append(draft(reconsume_times=times))
    parts.ask(processor, send_back(stored.commit_log_offset, delayLevel=asked))

    (message,) = read_queue(parts.store, SCHEDULE_TOPIC, level - 1)
    assert message.reconsume_times == times + 1


# times it failed before, header's limit, level, client version, is it dead?
LIMITS = {
    "the last try left": (15, None, 0, V3_4_9, False),
    "no try left": (16, None, 0, V3_4_9, True),
    "the header's limit reached": (2, 2, 0, V3_4_9, True),
    "the header's limit not reached": (16, 20, 0, V3_4_9, False),
    "an old client's header does not count": (2, 2, 0, V3_4_9 - 1, False),
    "a negative level at once": (0, None, -1, V3_4_9, True),
    "a limit of none": (0, 0, 0, V3_4_9, True),
}


@pytest.mark.parametrize("case", LIMITS.values(), ids=LIMITS.keys())
def test_send_back_ends_in_the_dead_letters_when(parts, processor, case):
    times, limit, level, version, is_dead = case
    stored = parts.store.append(draft(b"bad", reconsume_times=times, properties_text="DELAY\x013\x02"))
    fields = {"delayLevel": level} | ({} if limit is None else {"maxReconsumeTimes": limit})
    assert parts.ask(processor, send_back(stored.commit_log_offset, version, **fields)).code == ResponseCode.SUCCESS

    dead = read_queue(parts.store, DEAD, 0)
    assert bool(dead) == is_dead
    if is_dead:
        assert (dead[0].body, dead[0].reconsume_times) == (b"bad", times + 1)
        assert dead[0].properties["RETRY_TOPIC"] == "orders"
        assert dead[0].properties["DELAY"] == "0"
        topic = parts.topics.find(DEAD)
        assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (1, 1, 6)


def test_send_back_of_a_group_without_retry_queues_drops_the_message(parts, processor):
    save_group(parts.groups, SubscriptionGroupConfig(group_name="billing", retry_queue_nums=0))
    stored = parts.store.append(draft())
    end = parts.store.max_commit_log_offset

    assert parts.ask(processor, send_back(stored.commit_log_offset)).code == ResponseCode.SUCCESS
    assert parts.store.max_commit_log_offset == end


# the checks


def test_send_back_refuses_an_unknown_group(tmp_path):
    parts = BrokerParts(tmp_path / "closed", creates_groups=False)
    answer = parts.ask(processor_of(parts), send_back(0))

    assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    parts.close()


def test_send_back_refuses_on_a_broker_that_may_not_be_written(tmp_path):
    parts = BrokerParts(tmp_path / "closed", perm=PERM_READ)

    assert parts.ask(processor_of(parts), send_back(0)).code == ResponseCode.NO_PERMISSION
    parts.close()


def test_send_back_refuses_a_retry_topic_that_may_not_be_written(parts, processor):
    save_topic(parts.topics, TopicConfig(topic_name=RETRY, perm=PERM_READ))
    answer = parts.ask(processor, send_back(10**6))

    assert answer.code == ResponseCode.NO_PERMISSION
    assert RETRY in answer.remark


@pytest.mark.parametrize("commit_log_offset", [1, 10**6, -1])
def test_send_back_refuses_an_offset_where_no_message_is(parts, processor, commit_log_offset):
    parts.store.append(draft())
    answer = parts.ask(processor, send_back(commit_log_offset))

    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark == f"look message by offset failed, {commit_log_offset}"


async def test_send_back_is_answered_when_the_disk_has_it(parts, processor, monkeypatch):
    stored = parts.store.append(draft())
    waiting = []
    monkeypatch.setattr(parts.store, "when_flushed", lambda end, callback: waiting.append((end, callback)))

    assert parts.ask(processor, send_back(stored.commit_log_offset)) is None
    end, callback = waiting[0]
    assert end == parts.store.max_commit_log_offset
    callback(None)
    assert [command.code for command in parts.wire.sent] == [ResponseCode.SUCCESS]


def test_send_back_fails_when_the_disk_does(parts, processor, monkeypatch):
    stored = parts.store.append(draft())
    monkeypatch.setattr(parts.store, "when_flushed", lambda end, callback: callback(StoreFailed("the disk failed")))

    assert parts.ask(processor, send_back(stored.commit_log_offset)).code == ResponseCode.SYSTEM_ERROR


def test_send_back_fails_when_the_store_is_full(parts, processor, monkeypatch):
    stored = parts.store.append(draft())

    def refuse(_):
        raise StoreFull("no room")

    monkeypatch.setattr(parts.store, "append_batch", refuse)
    answer = parts.ask(processor, send_back(stored.commit_log_offset))

    assert answer.code != ResponseCode.SUCCESS
    assert answer.remark == "no room"


def test_send_back_picks_a_retry_queue_that_is_read(parts, processor):
    save_group(parts.groups, SubscriptionGroupConfig(group_name="billing", retry_queue_nums=16))
    save_topic(parts.topics, TopicConfig(topic_name=RETRY, read_queue_nums=1, write_queue_nums=1))
    stored = parts.store.append(draft(b"bad"))
    for _ in range(8):
        assert parts.ask(processor, send_back(stored.commit_log_offset)).code == ResponseCode.SUCCESS
    waiting = read_queue(parts.store, SCHEDULE_TOPIC, 2)
    assert {message.properties["REAL_QID"] for message in waiting} == {"0"}


@pytest.mark.parametrize(
    "wish", ["TIMER_DELIVER_MS\x019999999999999", "TIMER_DELAY_SEC\x01never", "TIMER_DELAY_MS\x015"]
)
def test_a_dead_letter_waits_for_no_time(parts, processor, wish):
    """The clock may have been set back, and messages of a batch say what they like."""
    stored = parts.store.append(draft(properties_text=f"{wish}\x02UNIQ_KEY\x01U1\x02"))
    answer = parts.ask(processor, send_back(stored.commit_log_offset, delayLevel=-1))
    assert answer.code == ResponseCode.SUCCESS
    (message,) = read_queue(parts.store, DEAD, 0)
    assert "TIMER" not in message.properties_text


def test_why_it_failed_becomes_properties_of_the_retry_in_the_place_of_an_earlier_reason(parts, processor):
    text = "RETRY_TOPIC\x01orders\x02__FAILURE_CLASS\x01Old\x02__FAILURE_LISTENER\x01shop.old\x02"
    stored = parts.store.append(draft(topic=RETRY, properties_text=text, reconsume_times=1))
    told = {"failureClass": "ValueError", "failureText": "no\x01\x02 sku\nat all", "failureAttempt": 2}
    parts.ask(processor, send_back(stored.commit_log_offset, **told))

    (message,) = read_queue(parts.store, SCHEDULE_TOPIC, 3)
    reason = read_reason(message.properties)
    assert reason == FailureReason("ValueError", "no   sku", attempt=2)
    assert "RETRY_TOPIC" in message.properties


def test_a_reason_of_an_earlier_attempt_is_not_told_of_this_one(parts, processor):
    stored = parts.store.append(draft(topic=RETRY, properties_text="__FAILURE_CLASS\x01Old\x02", reconsume_times=16))
    parts.ask(processor, send_back(stored.commit_log_offset))

    (message,) = read_queue(parts.store, DEAD, 0)
    assert read_reason(message.properties) is None


def test_a_reason_that_does_not_fit_beside_the_properties_is_left_out(parts, processor, monkeypatch):
    module = "broker.engine.processors.consumer_send_msg_back"
    monkeypatch.setattr(f"{module}.PROPERTIES_BYTES_MAX", PROPERTIES_RESERVED_BYTES + 300)
    for size, is_told in ((50, True), (250, False)):
        stored = parts.store.append(draft(properties_text=f"big\x01{'x' * size}\x02"))
        answer = parts.ask(processor, send_back(stored.commit_log_offset, failureClass="ValueError", failureText="no"))
        assert answer.code == ResponseCode.SUCCESS
        assert (read_reason(read_queue(parts.store, SCHEDULE_TOPIC, 2)[-1].properties) is not None) is is_told
