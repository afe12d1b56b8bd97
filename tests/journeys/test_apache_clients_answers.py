"""The same request to both brokers: same response code, same header fields, a body or none.

Remarks are free, and so are the fields beside an error: no client reads them.
"""

from __future__ import annotations

import itertools
import json
import socket
from typing import Any, NamedTuple

import pytest

from remoting.wire.batch import encode_batch
from remoting.wire.codes import RequestCode as Code
from remoting.wire.codes import ResponseCode, SerializeType
from remoting.wire.command import Command
from remoting.wire.headers.send import SendMessageHeaderV2
from remoting.wire.headers.typed import write_header
from tests.support.apache import ApacheRocketMQ
from tests.support.asking import ask, ask_in_turn
from tests.support.our_broker import OurBroker

pytestmark = [pytest.mark.journey, pytest.mark.java]

TOPIC = "answers"
QUEUE = {"topic": TOPIC, "queueId": "0"}
KNOWN = {"consumerGroup": "answers-known"}
UNKNOWN = {"consumerGroup": "answers-unknown"}
# Codes beside which a client looks into the header.
READ_BY_CLIENTS = {
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
}
opaques = itertools.count(1)


class Both(NamedTuple):
    ours: OurBroker
    apache: ApacheRocketMQ


@pytest.fixture(scope="module")
def both(ours_rocketmq: OurBroker, apache_rocketmq: ApacheRocketMQ) -> Both:
    """With one topic of two messages in queue 0, and one group that has committed 1 there."""
    for cluster in (ours_rocketmq, apache_rocketmq):
        for _ in range(2):
            assert ask(cluster.broker, send()).code == 0
        joined = asking(Code.HEART_BEAT, heartbeat(**consumer_data(KNOWN["consumerGroup"])))
        assert ask(cluster.broker, joined).code == 0
        commit = Command(code=Code.UPDATE_CONSUMER_OFFSET, ext_fields={**QUEUE, **KNOWN, "commitOffset": "1"})
        assert ask(cluster.broker, commit).code == 0
    return Both(ours_rocketmq, apache_rocketmq)


def send(body: bytes = b"body", code: int = Code.SEND_MESSAGE_V2, **fields: Any) -> Command:
    header = {
        "producer_group": "answers-senders",
        "topic": TOPIC,
        "queue_id": 0,
        "sys_flag": 0,
        "born_timestamp": 1_700_000_000_000,
        "flag": 0,
        "properties": "UNIQ_KEY\x01ABC\x02",
        **fields,
    }
    return Command(code=code, ext_fields=write_header(SendMessageHeaderV2(**header)), body=body)


def pull(**changes: str) -> Command:
    fields = {
        **QUEUE,
        **UNKNOWN,
        "queueOffset": "0",
        "maxMsgNums": "8",
        "sysFlag": "4",
        "commitOffset": "0",
        "suspendTimeoutMillis": "500",
        "subscription": "*",
        "subVersion": "0",
        "expressionType": "TAG",
    }
    return Command(code=Code.PULL_MESSAGE, ext_fields={**fields, **changes})


def asking(code: int, body: bytes = b"", **fields: str) -> Command:
    return Command(code=code, ext_fields=fields, body=body)


def without(command: Command, name: str) -> Command:
    del command.ext_fields[name]
    return command


def heartbeat(**consumer: Any) -> bytes:
    """Of a client without groups, or with the one consumer."""
    return json.dumps(
        {"clientID": "answers@1", "consumerDataSet": [consumer] if consumer else [], "producerDataSet": []}
    ).encode()


def checking(kind: str, expression: str) -> Command:
    subscription = {"topic": TOPIC, "expressionType": kind, "subString": expression, "subVersion": 1}
    body = {"clientId": "answers@1", "group": "answers-known", "namespace": "", "subscriptionData": subscription}
    return asking(Code.CHECK_CLIENT_CONFIG, json.dumps(body).encode())


def consumer_data(group: str, **subscription: Any) -> dict[str, Any]:
    return {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
        "subscriptionDataSet": [{"topic": TOPIC, "subString": "*", "subVersion": 1, **subscription}],
        "unitMode": False,
    }


BATCH = encode_batch([(0, b"one", {"UNIQ_KEY": "A"}), (0, b"two", {"UNIQ_KEY": "B"})])
BROKER_CASES = {
    "unknown code": asking(4711),
    "send": send(),
    "send, any queue": send(queue_id=-1),
    "send to a new topic": send(topic="answers-new"),
    "send, queue beyond the topic's": send(queue_id=77),
    "send, illegal topic": send(topic="an illegal topic"),
    "send, topic too long": send(topic="t" * 128),
    "send, empty topic": send(topic=""),
    "send to the schedule topic": send(topic="SCHEDULE_TOPIC_XXXX"),
    "send to the default topic": send(topic="TBW102"),
    "send, default topic unknown": send(topic="answers-no-default", default_topic="answers-nothing"),
    "send, empty body": send(b""),
    "send, body too large": send(b"x" * (4 * 1024 * 1024 + 1)),
    "send, properties too long": send(properties="k\x01" + "v" * 32_800 + "\x02"),
    "send, level beyond 18": send(properties="DELAY\x0199\x02"),
    "send, level not a number": send(properties="DELAY\x01soon\x02"),
    "send, number missing": without(send(), "e"),
    "send, number garbage": asking(Code.SEND_MESSAGE_V2, **{**send().ext_fields, "e": "many"}),
    "send to a retry topic": send(topic="%RETRY%answers-known"),
    "batch": send(BATCH, Code.SEND_BATCH_MESSAGE, batch=True),
    "batch to a retry topic": send(BATCH, Code.SEND_BATCH_MESSAGE, batch=True, topic="%RETRY%answers-known"),
    "batch of garbage": send(b"\x00\x00", Code.SEND_BATCH_MESSAGE, batch=True),
    "pull": pull(),
    "pull, no subscription": pull(sysFlag="0"),
    "pull, unknown topic": pull(topic="answers-missing"),
    "pull, queue beyond the topic's": pull(queueId="77"),
    "pull, negative queue": pull(queueId="-1"),
    "pull beyond the end": pull(queueOffset="9999"),
    "pull before the start": pull(queueOffset="-5"),
    "pull at the end of an empty queue": pull(topic="answers-new", queueId="3"),
    "pull beyond an empty queue": pull(topic="answers-new", queueId="3", queueOffset="7"),
    "pull, other tag": pull(subscription="other"),
    "pull, broken SQL": pull(expressionType="SQL92", subscription="a >"),
    "pull, SQL that lets it through": pull(expressionType="SQL92", subscription="UNIQ_KEY = 'ABC'"),
    "pull, SQL that lets nothing through": pull(expressionType="SQL92", subscription="UNIQ_KEY = 'other'"),
    "pull, SQL that cannot be compared": pull(expressionType="SQL92", subscription="UNIQ_KEY > 5"),
    "check of SQL": checking("SQL92", "a > 5 AND b IN ('x')"),
    "check of broken SQL": checking("SQL92", "a >"),
    "check of no SQL": checking("SQL92", ""),
    "check of tags": checking("TAG", "a || b"),
    "check of an unknown kind of expression": checking("REGEX", "a"),
    "pull, unknown kind of expression": pull(expressionType="REGEX", subscription="a"),
    "pull, number missing": without(pull(), "queueOffset"),
    "query committed": asking(Code.QUERY_CONSUMER_OFFSET, **QUEUE, **KNOWN),
    "query committed of an unknown group": asking(Code.QUERY_CONSUMER_OFFSET, **QUEUE, **UNKNOWN),
    "query committed, never zero": asking(Code.QUERY_CONSUMER_OFFSET, **QUEUE, **UNKNOWN, setZeroIfNotFound="false"),
    "query committed, unknown topic": asking(
        Code.QUERY_CONSUMER_OFFSET, **{**QUEUE, "topic": "answers-missing"}, **UNKNOWN
    ),
    "commit": asking(Code.UPDATE_CONSUMER_OFFSET, **QUEUE, **KNOWN, commitOffset="1"),
    "commit, unknown group": asking(
        Code.UPDATE_CONSUMER_OFFSET, **QUEUE, consumerGroup="answers-uncommitted", commitOffset="1"
    ),
    "commit, unknown topic": asking(
        Code.UPDATE_CONSUMER_OFFSET, topic="answers-missing", queueId="0", commitOffset="1", **KNOWN
    ),
    "commit, offset missing": asking(Code.UPDATE_CONSUMER_OFFSET, **QUEUE, **KNOWN),
    "commit, queue missing": asking(Code.UPDATE_CONSUMER_OFFSET, topic=TOPIC, commitOffset="1", **KNOWN),
    "max offset": asking(Code.GET_MAX_OFFSET, **QUEUE),
    "max offset, unknown topic": asking(Code.GET_MAX_OFFSET, topic="answers-missing", queueId="0"),
    "max offset, queue missing": asking(Code.GET_MAX_OFFSET, topic=TOPIC),
    "min offset": asking(Code.GET_MIN_OFFSET, **QUEUE),
    "min offset, unknown queue": asking(Code.GET_MIN_OFFSET, topic=TOPIC, queueId="77"),
    "search": asking(Code.SEARCH_OFFSET_BY_TIMESTAMP, **QUEUE, timestamp="0"),
    "search, future": asking(Code.SEARCH_OFFSET_BY_TIMESTAMP, **QUEUE, timestamp="9999999999999"),
    "search, unknown topic": asking(
        Code.SEARCH_OFFSET_BY_TIMESTAMP, topic="answers-missing", queueId="0", timestamp="0"
    ),
    "heartbeat": asking(Code.HEART_BEAT, heartbeat()),
    "heartbeat, garbage": asking(Code.HEART_BEAT, b"no json"),
    "heartbeat, no body": asking(Code.HEART_BEAT),
    "heartbeat of a consumer": asking(
        Code.HEART_BEAT,
        heartbeat(**consumer_data("answers-beating")),
    ),
    "unregister": asking(Code.UNREGISTER_CLIENT, clientID="answers@1", consumerGroup="answers-beating"),
    "unregister, nobody": asking(Code.UNREGISTER_CLIENT, clientID="answers@2"),
    "members of an unknown group": asking(Code.GET_CONSUMER_LIST_BY_GROUP, **UNKNOWN),
    "connections of an unknown group": asking(Code.GET_CONSUMER_CONNECTION_LIST, **UNKNOWN),
    "stats of a group": asking(Code.GET_CONSUME_STATS, **KNOWN),
    "stats of an unknown group": asking(Code.GET_CONSUME_STATS, **UNKNOWN),
    "running info of nobody": asking(Code.GET_CONSUMER_RUNNING_INFO, **UNKNOWN, clientId="nobody"),
    "topics": asking(Code.GET_ALL_TOPIC_CONFIG),
    "groups": asking(Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG),
    "committed offsets": asking(Code.GET_ALL_CONSUMER_OFFSET),
    "system topics": asking(Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER),
    "topic": asking(Code.GET_TOPIC_CONFIG, topic=TOPIC),
    "missing topic": asking(Code.GET_TOPIC_CONFIG, topic="answers-missing"),
    "stats of a topic": asking(Code.GET_TOPIC_STATS_INFO, topic=TOPIC),
    "stats of a missing topic": asking(Code.GET_TOPIC_STATS_INFO, topic="answers-missing"),
    "groups of a topic": asking(Code.QUERY_TOPIC_CONSUME_BY_WHO, topic=TOPIC),
    "groups of a missing topic": asking(Code.QUERY_TOPIC_CONSUME_BY_WHO, topic="answers-missing"),
    "runtime info": asking(Code.GET_BROKER_RUNTIME_INFO),
    "producers of an unknown group": asking(Code.GET_PRODUCER_CONNECTION_LIST, producerGroup="answers-unknown"),
    "earliest store time": asking(Code.GET_EARLIEST_MSG_STORETIME, **QUEUE),
    "earliest store time of a missing topic": asking(
        Code.GET_EARLIEST_MSG_STORETIME, topic="answers-missing", queueId="0"
    ),
    "message": asking(Code.VIEW_MESSAGE_BY_ID, offset="0"),
    "message that is not there": asking(Code.VIEW_MESSAGE_BY_ID, offset="99999999"),
    "send back what is not there": asking(
        Code.CONSUMER_SEND_MSG_BACK, group="answers-known", offset="99999999", delayLevel="0", originTopic=TOPIC
    ),
    "send back for an unknown group": asking(
        Code.CONSUMER_SEND_MSG_BACK, group="answers-unknown-2", offset="0", delayLevel="0", originTopic=TOPIC
    ),
}
# Where Apache fails inside (a Java exception's name is its answer), or lets everything through because it cannot read
# the expression that a pull brings along.
OURS_DIFFER = {
    "send, empty topic": ResponseCode.INVALID_PARAMETER,
    "send, empty body": ResponseCode.MESSAGE_ILLEGAL,
    "send, level not a number": ResponseCode.MESSAGE_ILLEGAL,
    "batch of garbage": ResponseCode.MESSAGE_ILLEGAL,
    "pull, broken SQL": ResponseCode.SUBSCRIPTION_PARSE_FAILED,
    "pull, unknown kind of expression": ResponseCode.SUBSCRIPTION_PARSE_FAILED,
}
NAMESRV_CASES = {
    "unknown code": asking(4711),
    "route": asking(Code.GET_ROUTEINFO_BY_TOPIC, topic=TOPIC),
    "route of a missing topic": asking(Code.GET_ROUTEINFO_BY_TOPIC, topic="answers-missing"),
    "clusters": asking(Code.GET_BROKER_CLUSTER_INFO),
    "topics": asking(Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER),
}


def shape(answer: Command) -> dict[str, Any]:
    fields = sorted(answer.ext_fields) if answer.code in READ_BY_CLIENTS else []
    return {"code": answer.code, "fields": fields, "body": bool(answer.body)}


def compare(ours: str, apache: str, request: Command) -> None:
    for kind in (SerializeType.JSON, SerializeType.ROCKETMQ):
        request.serialize_type = kind
        request.opaque = next(opaques)
        our_answer, their_answer = ask(ours, request, 10), ask(apache, request, 10)
        assert our_answer.serialize_type is kind
        assert shape(our_answer) == shape(their_answer), f"ours: {our_answer}\nApache's: {their_answer}"


@pytest.mark.parametrize("case", [case for case in BROKER_CASES if case not in OURS_DIFFER])
def test_our_broker_answers_as_apaches(both: Both, case: str) -> None:
    compare(both.ours.broker, both.apache.broker, BROKER_CASES[case])


@pytest.mark.parametrize("case", OURS_DIFFER)
def test_our_broker_refuses_in_its_own_words(ours_rocketmq: OurBroker, case: str) -> None:
    answer = ask(ours_rocketmq.broker, BROKER_CASES[case])
    assert answer.code == OURS_DIFFER[case]
    assert "Exception" not in (answer.remark or "")
    assert answer.remark


@pytest.mark.parametrize(
    ("sql", "sub_version", "code"),
    [
        ("UNIQ_KEY = 'ABC'", 1, ResponseCode.SUCCESS),
        ("UNIQ_KEY = 'other'", 1, ResponseCode.PULL_RETRY_IMMEDIATELY),
        ("UNIQ_KEY >", 1, ResponseCode.FILTER_DATA_NOT_EXIST),
        ("UNIQ_KEY = 'ABC'", 2, ResponseCode.SUBSCRIPTION_NOT_LATEST),
    ],
    ids=["lets it through", "keeps it out", "broken", "older than the member's"],
)
def test_both_filter_by_the_sql_of_a_members_heartbeat(
    both: Both, request: pytest.FixtureRequest, sql: str, sub_version: int, code: ResponseCode
) -> None:
    group = f"answers-{request.node.callspec.id.replace(' ', '-').replace(chr(39), '')}"
    joins = asking(Code.HEART_BEAT, heartbeat(**consumer_data(group, expressionType="SQL92", subString=sql)))
    pulls = pull(consumerGroup=group, sysFlag="0", subVersion=str(sub_version))
    pulls.opaque = 1
    for address in (both.ours.broker, both.apache.broker):
        joined, answer = ask_in_turn(address, [joins, pulls], 10)
        assert (joined.code, answer.code) == (ResponseCode.SUCCESS, code), answer.remark


@pytest.mark.parametrize("case", NAMESRV_CASES)
def test_our_name_server_answers_as_apaches(both: Both, case: str) -> None:
    compare(both.ours.namesrv, both.apache.namesrv, NAMESRV_CASES[case])


def test_a_frame_that_announces_too_much_is_cut_off_by_both(both: Both) -> None:
    for address in (both.ours.broker, both.apache.broker):
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), 5) as connection:
            connection.sendall((17 * 1024 * 1024).to_bytes(4, "big") + b"\x00" * 64)
            assert connection.recv(1) == b""
