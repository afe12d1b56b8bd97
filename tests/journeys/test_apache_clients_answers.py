"""The same request to both brokers: same response code, same header fields, a body or none.

Remarks are free, and so are the fields beside an error: no client reads them.
"""

from __future__ import annotations

import itertools
import re
import socket
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from remoting.wire.batch import encode_batch
from remoting.wire.codes import RequestCode as Code
from remoting.wire.codes import ResponseCode, SerializeType
from remoting.wire.command import Command
from remoting.wire.stored_message import StoredMessage, decode_messages
from tests.journeys.answer_cases import (
    BROKER_CASES,
    KNOWN,
    NAMESRV_CASES,
    NAMESRV_DIFFERS,
    OURS_DIFFER,
    QUEUE,
    asking,
    consumer_data,
    heartbeat,
    pull,
    query_message,
    send,
)
from tests.support.apache import ApacheRocketMQ
from tests.support.asking import ask, ask_in_turn
from tests.support.our_broker import OurBroker
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java]

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
        wait_until(lambda: are_found(cluster.broker), what="both messages in queue and index")  # noqa: B023 - called at once
    return Both(ours_rocketmq, apache_rocketmq)


def are_found(broker: str) -> bool:
    """Whether the two messages are pulled, and found by their key, which both have."""
    asked = (pull(), query_message("ABC"), query_message("ABC", _UNIQUE_KEY_QUERY="true"))
    return all(len(decode_messages(ask(broker, request).body)) >= 2 for request in asked)


def shape(answer: Command) -> dict[str, Any]:
    fields = sorted(answer.ext_fields) if answer.code in READ_BY_CLIENTS else []
    return {"code": answer.code, "fields": fields, "body": bool(answer.body)}


def compare(ours: str, apache: str, request: Command) -> None:
    for kind in (SerializeType.JSON, SerializeType.ROCKETMQ):
        request.serialize_type = kind
        request.opaque = next(opaques)
        our_answer, their_answer = ask(ours, request), ask(apache, request)
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
        joined, answer = ask_in_turn(address, [joins, pulls])
        assert (joined.code, answer.code) == (ResponseCode.SUCCESS, code), answer.remark


@pytest.mark.parametrize("case", NAMESRV_CASES)
def test_our_name_server_answers_as_apaches(both: Both, case: str) -> None:
    compare(both.ours.namesrv, both.apache.namesrv, NAMESRV_CASES[case])


@pytest.mark.parametrize("case", NAMESRV_DIFFERS)
def test_our_name_server_refuses_what_it_does_not_serve(ours_rocketmq: OurBroker, case: str) -> None:
    answer = ask(ours_rocketmq.namesrv, NAMESRV_DIFFERS[case])
    assert answer.code == ResponseCode.NO_PERMISSION
    assert answer.remark


def test_both_find_queue_offsets_by_time_alike(both: Both) -> None:
    """Three messages, then three stored in the same millisecond, then one: at, before, after and between them."""
    topic = "answers-times"
    offsets = {}
    for cluster in (both.ours, both.apache):
        for _ in range(3):
            assert ask(cluster.broker, send(topic=topic)).code == 0
            time.sleep(0.02)  # the store's clock counts milliseconds
        batch = encode_batch([(0, b"body", {"UNIQ_KEY": name}) for name in "ABC"])
        assert ask(cluster.broker, send(batch, Code.SEND_BATCH_MESSAGE, batch=True, topic=topic)).code == 0
        time.sleep(0.02)
        assert ask(cluster.broker, send(topic=topic)).code == 0
        pulled = wait_until(lambda: seven(cluster.broker, topic), what="seven messages")  # noqa: B023 - called at once
        first, second, batched, last = (pulled[place].store_timestamp_ms for place in (0, 1, 3, 6))
        moments = {
            "before": first - 1,
            "first": first,
            "between": second - 1,
            "second": second,
            "before the batch": batched - 1,
            "batch": batched,
            "after the batch": batched + 1,
            "last": last,
            "after": last + 1,
        }
        offsets[cluster.name] = {
            (name, boundary): by_time(cluster.broker, topic, moment, boundary)
            for name, moment in moments.items()
            for boundary in ("LOWER", "UPPER", "upper", "other", None)
        }
    assert offsets["ours"] == offsets["apache"]
    assert offsets["ours"]["batch", "LOWER"] == "3"
    assert offsets["ours"]["batch", "UPPER"] == "5"


def seven(broker: str, topic: str) -> list[StoredMessage] | None:
    messages = decode_messages(ask(broker, pull(topic=topic)).body)
    return messages if len(messages) == 7 else None


def by_time(broker: str, topic: str, timestamp: int, boundary: str | None) -> str:
    fields = {"topic": topic, "queueId": "0", "timestamp": str(timestamp)}
    if boundary is not None:
        fields["boundaryType"] = boundary
    return ask(broker, asking(Code.SEARCH_OFFSET_BY_TIMESTAMP, **fields)).ext_fields["offset"]


def codes_of_rows(start: str) -> list[int]:
    """Of the compatibility page's rows that say "no" and whose reason begins with `start`."""
    page = (Path(__file__).parents[2] / "docs/COMPATIBILITY.md").read_text(encoding="utf-8")
    return [int(code) for code in re.findall(rf"^\| (\d+) \| \w+ \| no \|  \| {start}", page, re.MULTILINE)]


def test_codes_that_the_page_says_no_to_are_answered_as_unknown(ours_rocketmq: OurBroker) -> None:
    assert {200050, 200054} <= set(codes_of_rows("")), "POP"
    for code in codes_of_rows(""):
        for address in (ours_rocketmq.broker, ours_rocketmq.namesrv):
            assert ask(address, asking(code)).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED, (code, address)


def test_codes_that_apache_does_not_know_either_are_named_so(both: Both) -> None:
    assert codes_of_rows("Nor does Apache")
    for code in codes_of_rows("Nor does Apache"):
        for address in (both.apache.broker, both.apache.namesrv):
            assert ask(address, asking(code)).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED, (code, address)


def test_a_frame_that_announces_too_much_is_cut_off_by_both(both: Both) -> None:
    for address in (both.ours.broker, both.apache.broker):
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), 60) as connection:
            connection.sendall((17 * 1024 * 1024).to_bytes(4, "big") + b"\x00" * 64)
            assert connection.recv(1) == b""
