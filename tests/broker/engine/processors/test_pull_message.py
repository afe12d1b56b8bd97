"""Pulling: the order of the checks, what each place of a queue answers, waiting for messages."""

from __future__ import annotations

import asyncio
import errno

import pytest

from broker.engine.processors.pull_message import PullMessage
from broker.engine.serving.held_pulls import HeldPulls
from broker.engine.store import reader
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.bodies.topics import PERM_READ, PERM_WRITE, TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.pull import COMMIT_OFFSET_FLAG, SUBSCRIPTION_FLAG, SUSPEND_FLAG
from remoting.wire.stored_message import decode_messages
from remoting.wire.tags import tags_code
from tests.support.broker_parts import BrokerParts, Wire, save_group, save_topic
from tests.support.stores import draft
from tests.support.waiting import eventually


def pull(code: int = RequestCode.PULL_MESSAGE, **fields) -> Command:
    values = {
        "consumerGroup": "billing",
        "topic": "orders",
        "queueId": "0",
        "queueOffset": "0",
        "maxMsgNums": "32",
        "sysFlag": "0",
        "commitOffset": "0",
        "suspendTimeoutMillis": "15000",
        "subVersion": "5",
    }
    return Command(code=code, opaque=4, ext_fields=values | {name: str(value) for name, value in fields.items()})


def subscription(topic: str = "orders", tags: str = "*", version: int = 5, **fields) -> SubscriptionData:
    codes = [] if tags == "*" else [tags_code(tag.strip()) for tag in tags.split("||")]
    return SubscriptionData(topic=topic, sub_string=tags, sub_version=version, code_set=codes, **fields)


@pytest.fixture
async def parts(tmp_path, monkeypatch):
    # The time that a scan may take does not pass.
    monkeypatch.setattr(reader, "perf_counter", lambda: 0.0)
    parts = BrokerParts(tmp_path / "store")
    save_topic(parts.topics, TopicConfig(topic_name="orders", read_queue_nums=4, write_queue_nums=4))
    parts.join("billing", subscription())
    yield parts
    parts.close()


def processor_of(parts) -> PullMessage:
    return parts.pull_message()


@pytest.fixture
def processor(parts):
    return processor_of(parts)


def found(answer: Command) -> list[bytes]:
    return [message.body for message in decode_messages(answer.body)]


def places(answer: Command) -> tuple[int, int, int]:
    names = ("nextBeginOffset", "minOffset", "maxOffset")
    next_offset, min_offset, max_offset = (int(answer.ext_fields[name]) for name in names)
    return next_offset, min_offset, max_offset


@pytest.mark.parametrize("code", [RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE])
def test_pull_answers_the_messages_as_they_are_stored(parts, processor, code):
    for body in (b"one", b"two"):
        parts.store.append(draft(body))
    answer = parts.ask(processor, pull(code))

    assert (answer.code, answer.remark, answer.opaque) == (ResponseCode.SUCCESS, "FOUND", 4)
    assert found(answer) == [b"one", b"two"]
    assert answer.ext_fields == {
        "suggestWhichBrokerId": "0",
        "nextBeginOffset": "2",
        "minOffset": "0",
        "maxOffset": "2",
        "topicSysFlag": "0",
        "groupSysFlag": "0",
    }


@pytest.mark.parametrize(("wanted", "count"), [(1, 1), (5, 5), (32, 32), (1_000, 32), (0, 1), (-1, 1)])
def test_pull_answers_at_most_thirty_two(parts, processor, wanted, count):
    for number in range(40):
        parts.store.append(draft(b"%d" % number))

    assert len(found(parts.ask(processor, pull(maxMsgNums=wanted)))) == count


# messages in the queue, offset asked for, code, remark, next offset
PLACES = {
    "nothing there, at the start": (0, 0, ResponseCode.PULL_NOT_FOUND, "NO_MATCHED_LOGIC_QUEUE", 0),
    "nothing there, elsewhere": (0, 7, ResponseCode.PULL_OFFSET_MOVED, "NO_MATCHED_LOGIC_QUEUE", 0),
    "at the end": (3, 3, ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE", 3),
    "beyond the end": (3, 9, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY", 3),
    "before the start": (3, -1, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL", 0),
    "the last message": (3, 2, ResponseCode.SUCCESS, "FOUND", 3),
}


@pytest.mark.parametrize("case", PLACES.values(), ids=PLACES.keys())
def test_pull_from(parts, processor, case):
    count, queue_offset, code, remark, next_offset = case
    for _ in range(count):
        parts.store.append(draft())

    answer = parts.ask(processor, pull(queueOffset=queue_offset))

    assert (answer.code, answer.remark) == (code, remark)
    assert places(answer) == (next_offset, 0, count)


# the checks


def _closed_to_readers(parts):
    save_topic(parts.topics, TopicConfig(topic_name="orders", perm=PERM_WRITE, read_queue_nums=4))


def _group_disabled(parts):
    save_group(parts.groups, SubscriptionGroupConfig(group_name="billing", consume_enable=False))


def _no_broadcast(parts):
    save_group(parts.groups, SubscriptionGroupConfig(group_name="billing", consume_broadcast_enable=False))
    parts.join("billing", subscription(), model="BROADCASTING")


def _other_topic(parts):
    parts.join("billing", subscription(topic="elsewhere"))


def _broken_sql(parts):
    parts.join("billing", subscription(tags="a > 'x'", version=9, expression_type="SQL92"))


def _unknown_kind(parts):
    parts.join("billing", subscription(tags="a", version=9, expression_type="REGEX"))


def _nothing(parts):
    """The request alone is wrong."""


# what is so, the request, code, forbiddenType, a word of the remark
REFUSALS = {
    "an illegal group": (_nothing, {"consumerGroup": "no group"}, 26, None, "no group"),
    "a disabled group": (_group_disabled, {}, 16, "2", "billing"),
    "an unknown topic": (_nothing, {"topic": "none"}, 17, None, "none"),
    "a topic closed to readers": (_closed_to_readers, {}, 16, "3", "orders"),
    "a queue beyond the last": (_nothing, {"queueId": 4}, 29, None, "queueId[4]"),
    "a negative queue": (_nothing, {"queueId": -1}, 29, None, "queueId[-1]"),
    "an own expression without a tag": (
        _nothing,
        {"sysFlag": SUBSCRIPTION_FLAG, "subscription": "||"},
        23,
        None,
        "tag",
    ),
    "a group without members": (_nothing, {"consumerGroup": "nobody"}, 24, None, "group info not exist"),
    "a broadcast that the group forbids": (_no_broadcast, {}, 16, "4", "broadcast"),
    "a topic that the group has not": (_other_topic, {}, 24, None, "subscription not exist"),
    "a subscription that is newer than ours": (_nothing, {"subVersion": 6}, 25, None, "not latest"),
    "broken SQL in the heartbeat": (_broken_sql, {}, 27, None, "character 5"),
    "an unknown kind of expression in the heartbeat": (_unknown_kind, {}, 27, None, "REGEX"),
    "broken SQL in the request": (
        _nothing,
        {"sysFlag": SUBSCRIPTION_FLAG, "subscription": "a >", "expressionType": "SQL92"},
        23,
        None,
        "character 4",
    ),
    # two faults: the first of RocketMQ's order
    "the group before the topic": (_group_disabled, {"topic": "none"}, 16, "2", "billing"),
    "the topic before the queue": (_nothing, {"topic": "none", "queueId": 99}, 17, None, "none"),
    "reading rights before the queue": (_closed_to_readers, {"queueId": 99}, 16, "3", "orders"),
    "the queue before the subscription": (_other_topic, {"queueId": 99}, 29, None, "queueId[99]"),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS.keys())
def test_pull_refuses(parts, processor, case):
    make_it_so, fields, code, forbidden_type, word = case
    make_it_so(parts)
    flag = int(fields.get("sysFlag", 0)) | COMMIT_OFFSET_FLAG
    answer = parts.ask(processor, pull(**(fields | {"sysFlag": flag, "commitOffset": 3})))

    assert answer.code == code
    assert word in answer.remark
    assert answer.ext_fields.get("forbiddenType") == forbidden_type
    assert list(parts.offsets.items()) == []


def test_pull_refuses_on_a_broker_that_may_not_be_read(tmp_path):
    parts = BrokerParts(tmp_path / "store", perm=PERM_WRITE)
    answer = parts.ask(processor_of(parts), pull())

    assert (answer.code, answer.ext_fields["forbiddenType"]) == (ResponseCode.NO_PERMISSION, "1")
    parts.close()


def test_pull_is_open_on_a_broker_that_may_only_be_read(tmp_path):
    parts = BrokerParts(tmp_path / "store", perm=PERM_READ)
    save_topic(parts.topics, TopicConfig(topic_name="orders"))
    parts.join("billing", subscription())

    assert parts.ask(processor_of(parts), pull()).code == ResponseCode.PULL_NOT_FOUND
    parts.close()


# filters


@pytest.mark.parametrize(
    ("tags", "bodies"),
    [("*", [b"1", b"2", b"3", b"4"]), ("a", [b"1", b"3"]), ("a || b", [b"1", b"2", b"3"])],
    ids=["all", "one", "two"],
)
def test_pull_filters_by_the_groups_tags(parts, processor, tags, bodies):
    for body, tag in ((b"1", "a"), (b"2", "b"), (b"3", "a"), (b"4", None)):
        parts.store.append(draft(body, tags=tag))
    parts.join("billing", subscription(tags=tags, version=6))
    answer = parts.ask(processor, pull())

    assert found(answer) == bodies
    assert places(answer) == (4, 0, 4)


def test_pull_takes_the_text_where_a_client_sends_no_hashes(parts, processor):
    parts.store.append(draft(b"1", tags="a"))
    parts.store.append(draft(b"2", tags="b"))
    parts.join("billing", SubscriptionData(topic="orders", sub_string="a || c", sub_version=6))

    assert found(parts.ask(processor, pull())) == [b"1"]


def test_pull_uses_its_own_expression_without_any_member(parts, processor):
    parts.store.append(draft(b"1", tags="a"))
    parts.store.append(draft(b"2", tags="b"))
    answer = parts.ask(processor, pull(consumerGroup="nobody", sysFlag=SUBSCRIPTION_FLAG, subscription="b"))

    assert found(answer) == [b"2"]


def sized(body: bytes, size: str, **fields):
    return draft(body, properties_text=f"size\x01{size}\x02", **fields)


def test_pull_filters_by_the_groups_sql(parts, processor):
    parts.join("billing", subscription(tags="size > 5", version=6, expression_type="SQL92"))
    for body, size in ((b"1", "6"), (b"2", "5"), (b"3", "many"), (b"4", "60")):
        parts.store.append(sized(body, size))
    parts.store.append(draft(b"5"))
    answer = parts.ask(processor, pull())

    assert found(answer) == [b"1", b"4"]
    assert places(answer) == (5, 0, 5)


def test_pull_uses_its_own_sql_without_any_member(parts, processor):
    parts.store.append(sized(b"1", "6"))
    parts.store.append(sized(b"2", "5"))
    own = {"sysFlag": SUBSCRIPTION_FLAG, "subscription": "size = 5", "expressionType": "SQL92"}

    assert found(parts.ask(processor, pull(consumerGroup="nobody", **own))) == [b"2"]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("topic", ["orders", "%RETRY%" + "o" * 140], ids=["short topic", "long topic"])
def test_pull_filters_large_messages_by_sql_too(parts, processor, host, topic):
    save_topic(parts.topics, TopicConfig(topic_name=topic))
    for size in ("5", "6"):
        parts.store.append(sized(size.encode() * 6_000, size, topic=topic, born_host=(host, 1), store_host=(host, 2)))
    own = {"sysFlag": SUBSCRIPTION_FLAG, "subscription": "size = 6", "expressionType": "SQL92"}

    assert found(parts.ask(processor, pull(topic=topic, **own))) == [b"6" * 6_000]


def test_pull_that_found_nothing_by_sql_moves_on(parts, processor):
    parts.join("billing", subscription(tags="size > 5", version=6, expression_type="SQL92"))
    parts.store.append(sized(b"1", "1"))
    answer = parts.ask(processor, pull())

    assert (answer.code, answer.remark) == (ResponseCode.PULL_RETRY_IMMEDIATELY, "NO_MATCHED_MESSAGE")
    assert places(answer) == (1, 0, 1)


def test_sql_is_refused_in_rocketmqs_words_where_it_is_switched_off(tmp_path):
    parts = BrokerParts(tmp_path / "store", property_filter=False)
    save_topic(parts.topics, TopicConfig(topic_name="orders"))
    own = {"sysFlag": SUBSCRIPTION_FLAG, "subscription": "size = 5", "expressionType": "SQL92"}
    answer = parts.ask(processor_of(parts), pull(**own))
    parts.close()

    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark == "The broker does not support consumer to filter message by SQL92"


async def test_pull_goes_on_waiting_while_its_sql_keeps_messages_out(parts, processor):
    parts.join("billing", subscription(tags="size > 5", version=6, expression_type="SQL92"))
    parts.ask(processor, pull(sysFlag=SUSPEND_FLAG))
    parts.store.append(sized(b"1", "1"))
    await asyncio.sleep(0.01)
    assert parts.wire.sent == []

    parts.store.append(sized(b"2", "9"))
    await eventually(lambda: parts.wire.sent)
    assert found(parts.wire.sent[0]) == [b"2"]


def test_pull_moves_past_what_the_filter_keeps_out(parts, processor):
    for _ in range(3):
        parts.store.append(draft(tags="b"))
    parts.join("billing", subscription(tags="a", version=6))
    answer = parts.ask(processor, pull(sysFlag=SUSPEND_FLAG))

    assert (answer.code, answer.remark) == (ResponseCode.PULL_RETRY_IMMEDIATELY, "NO_MATCHED_MESSAGE")
    assert places(answer)[0] == 3


# committing


@pytest.mark.parametrize("queue_offset", [0, 1, 9])
def test_pull_commits_the_offset_whatever_it_finds(parts, processor, queue_offset):
    parts.store.append(draft())
    parts.ask(processor, pull(sysFlag=COMMIT_OFFSET_FLAG, commitOffset=1, queueOffset=queue_offset))

    assert parts.offsets.committed("billing", "orders", 0) == 1


def test_pull_does_not_commit_an_offset_that_cannot_be(parts, processor):
    parts.ask(processor, pull(sysFlag=COMMIT_OFFSET_FLAG, commitOffset=-1))

    assert parts.offsets.committed("billing", "orders", 0) is None


def test_pull_without_the_bit_commits_nothing(parts, processor):
    parts.ask(processor, pull(commitOffset=1))

    assert parts.offsets.committed("billing", "orders", 0) is None


async def test_pull_is_noted_with_who_pulled_and_up_to_where(parts, processor):
    parts.store.append(draft())
    parts.ask(processor, pull())

    assert parts.offsets.pulled_offset("billing", "orders", 0) == 1
    ((topic, queue_id, assignment),) = parts.watch.assignments.of_group("billing")
    assert (topic, queue_id, assignment.client_id) == ("orders", 0, "client-1")


# waiting


async def test_pull_waits_for_the_next_message_and_answers_on_its_own_opaque(parts, processor):
    assert parts.ask(processor, pull(sysFlag=SUSPEND_FLAG)) is None
    assert len(parts.held_pulls) == 1
    parts.store.append(draft(b"one"))

    await eventually(lambda: parts.wire.sent)
    assert found(parts.wire.sent[0]) == [b"one"]
    assert parts.wire.sent[0].opaque == 4
    assert len(parts.held_pulls) == 0


async def test_pull_waits_no_longer_than_it_said(parts, processor):
    parts.ask(processor, pull(sysFlag=SUSPEND_FLAG, suspendTimeoutMillis=30))

    await eventually(lambda: parts.wire.sent)
    assert parts.wire.sent[0].code == ResponseCode.PULL_NOT_FOUND
    assert places(parts.wire.sent[0])[0] == 0
    assert len(parts.held_pulls) == 0


async def test_pull_goes_on_waiting_while_its_filter_keeps_messages_out(parts, processor):
    parts.join("billing", subscription(tags="a", version=6))
    parts.ask(processor, pull(sysFlag=SUSPEND_FLAG))
    parts.store.append(draft(b"1", tags="b"))
    await asyncio.sleep(0.01)
    assert parts.wire.sent == []

    parts.store.append(draft(b"2", tags="a"))
    await eventually(lambda: parts.wire.sent)
    assert found(parts.wire.sent[0]) == [b"2"]


async def test_pull_that_waited_commits_nothing_again(parts, processor):
    parts.ask(processor, pull(sysFlag=SUSPEND_FLAG | COMMIT_OFFSET_FLAG, commitOffset=1))
    parts.offsets.commit("billing", "orders", 0, 5)
    parts.store.append(draft())

    await eventually(lambda: parts.wire.sent)
    assert parts.offsets.committed("billing", "orders", 0) == 5


async def test_pull_that_waited_hears_what_changed_meanwhile(parts, processor):
    parts.ask(processor, pull(sysFlag=SUSPEND_FLAG))
    _group_disabled(parts)
    parts.store.append(draft())

    await eventually(lambda: parts.wire.sent)
    assert (parts.wire.sent[0].code, parts.wire.sent[0].ext_fields) == (16, {"forbiddenType": "2"})


@pytest.mark.parametrize("queue_offset", [1, 9])
def test_pull_does_not_wait_where_waiting_would_not_help(parts, processor, queue_offset):
    answer = parts.ask(processor, pull(sysFlag=SUSPEND_FLAG, queueOffset=queue_offset))

    assert answer.code == ResponseCode.PULL_OFFSET_MOVED


def test_pull_does_not_wait_when_not_asked_to(parts, processor):
    assert parts.ask(processor, pull()).code == ResponseCode.PULL_NOT_FOUND


async def test_pull_is_answered_at_once_when_too_many_wait(parts):
    parts.held_pulls = HeldPulls(parts.store.max_offset, parts.store.properties_of, parts.complaints, held_max=1)
    processor = processor_of(parts)

    assert parts.ask(processor, pull(sysFlag=SUSPEND_FLAG)) is None
    assert parts.ask(processor, pull(sysFlag=SUSPEND_FLAG)).code == ResponseCode.PULL_NOT_FOUND


async def test_pull_of_a_peer_that_is_gone_is_not_kept(parts, processor):
    wire = Wire()
    wire.is_open = False
    parts.ask(processor, pull(sysFlag=SUSPEND_FLAG), wire)

    assert len(parts.held_pulls) == 0


async def test_pull_that_waited_hears_that_the_disk_cannot_be_read(parts, processor, monkeypatch):
    assert parts.ask(processor, pull(sysFlag=SUSPEND_FLAG)) is None

    def fails(*place: object, **limits: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(parts.store, "read", fails)
    parts.store.append(draft(b"one"))
    await eventually(lambda: parts.wire.sent)
    assert (parts.wire.sent[0].code, parts.wire.sent[0].opaque) == (ResponseCode.SYSTEM_ERROR, 4)
    assert "Input/output error" in parts.wire.sent[0].remark
