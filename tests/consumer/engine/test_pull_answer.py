from __future__ import annotations

import pytest

from consumer.engine.pull_answer import NEEDS_HEARTBEAT, PullRefused, accepted_answer
from consumer.engine.subscriptions import subscribe
from remoting.client.pull_answer import PullStatus
from remoting.wire.codes import RESPONSE_FLAG, ResponseCode
from remoting.wire.command import Command
from remoting.wire.errors import BodyError, HeaderError
from remoting.wire.properties import encode_properties
from remoting.wire.stored_message import StoredMessage, encode_message

SUBSCRIPTIONS = subscribe("billing", {"orders": "Aa || refunded"}, 0)
FIELDS = {"suggestWhichBrokerId": "1", "nextBeginOffset": "42", "minOffset": "0", "maxOffset": "50"}


def answer(code: int, body: bytes = b"", fields: dict[str, str] | None = None) -> Command:
    return Command(code=code, flag=RESPONSE_FLAG, ext_fields=FIELDS if fields is None else fields, body=body)


def stored(topic: str, tags: str) -> bytes:
    return encode_message(StoredMessage(topic=topic, queue_id=0, properties_text=encode_properties({"TAGS": tags})))


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (ResponseCode.SUCCESS, PullStatus.FOUND),
        (ResponseCode.PULL_NOT_FOUND, PullStatus.NO_NEW_MESSAGE),
        (ResponseCode.PULL_RETRY_IMMEDIATELY, PullStatus.NO_MATCHED_MESSAGE),
        (ResponseCode.PULL_OFFSET_MOVED, PullStatus.OFFSET_ILLEGAL),
    ],
)
def test_a_code_means(code: int, status: PullStatus) -> None:
    result = accepted_answer(answer(code), SUBSCRIPTIONS)
    assert (result.status, result.next_offset, result.suggested_broker_id) == (status, 42, 1)


def test_tags_whose_hashes_collide_are_told_apart_by_their_text() -> None:
    body = stored("orders", "Aa") + stored("orders", "BB") + stored("%RETRY%billing", "BB")
    result = accepted_answer(answer(0, body), SUBSCRIPTIONS)
    assert [(message.topic, message.tags) for message in result.messages] == [
        ("orders", "Aa"),
        ("%RETRY%billing", "BB"),
    ]


@pytest.mark.parametrize(
    ("code", "retry_after_ms", "heartbeat_cures"),
    [
        pytest.param(ResponseCode.FLOW_CONTROL, 20, False, id="flow control"),
        pytest.param(ResponseCode.SUBSCRIPTION_NOT_EXIST, 1000, True, id="the broker forgot us"),
        pytest.param(ResponseCode.SUBSCRIPTION_NOT_LATEST, 1000, True, id="the broker has an older subscription"),
        pytest.param(ResponseCode.NO_PERMISSION, 1000, False, id="forbidden"),
        pytest.param(ResponseCode.SYSTEM_ERROR, 1000, False, id="any other"),
    ],
)
def test_other_codes_are_refusals_with_a_delay(code: int, retry_after_ms: int, heartbeat_cures: bool) -> None:
    with pytest.raises(PullRefused) as caught:
        accepted_answer(answer(code, fields={}), SUBSCRIPTIONS)
    assert caught.value.retry_after_ms == retry_after_ms
    assert (code in NEEDS_HEARTBEAT) == heartbeat_cures


def test_an_answer_without_its_offsets_is_an_error() -> None:
    with pytest.raises(HeaderError):
        accepted_answer(answer(0, fields={}), SUBSCRIPTIONS)


def test_a_message_that_is_cut_off_is_an_error() -> None:
    with pytest.raises(BodyError):
        accepted_answer(answer(0, stored("orders", "Aa")[:-1]), SUBSCRIPTIONS)
