"""What is refused because it came too late, and what never is."""

from __future__ import annotations

import pytest

from broker.engine.serving.overload import (
    BODY_BYTES_MAX,
    PULL_WAIT_MS_MAX,
    SEND_WAIT_MS_MAX,
    SENDER_TIMEOUT_MS,
    WAIT_MS_MAX,
    Overload,
)
from broker.engine.serving.request_table import RequestTable
from broker.engine.serving.requests import Request
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from tests.support.broker_parts import Wire


class FakeLag:
    def __init__(self, lag_s: float = 0.0) -> None:
        self._lag_s = lag_s

    def lag_s(self, now_s: float) -> float:
        return self._lag_s


def is_refused(code: int, waited_ms: float, lag_s: float = 0.0) -> bool:
    wire = Wire()
    wire.waited_s = waited_ms / 1000
    try:
        Overload(FakeLag(lag_s)).check(Request(Command(code=code), wire))
    except MessageError:
        return True
    return False


@pytest.mark.parametrize(
    ("code", "wait_ms_max"),
    [
        (RequestCode.SEND_MESSAGE, SEND_WAIT_MS_MAX),
        (RequestCode.SEND_MESSAGE_V2, SEND_WAIT_MS_MAX),
        (RequestCode.SEND_BATCH_MESSAGE, SEND_WAIT_MS_MAX),
        (RequestCode.PULL_MESSAGE, PULL_WAIT_MS_MAX),
        (RequestCode.LITE_PULL_MESSAGE, PULL_WAIT_MS_MAX),
    ],
)
def test_what_waited_too_long_is_refused(code, wait_ms_max):
    assert not is_refused(code, wait_ms_max - 1)
    assert is_refused(code, wait_ms_max + 1)


def test_what_saves_work_later_is_never_refused():
    assert not [code for code in set(RequestCode) - set(WAIT_MS_MAX) if is_refused(code, 3_600_000, lag_s=3600)]


def test_a_send_that_lay_in_the_kernel_is_refused_when_its_sender_must_have_given_up():
    assert not is_refused(RequestCode.SEND_MESSAGE_V2, 0, lag_s=SENDER_TIMEOUT_MS / 1000 - 0.1)
    assert is_refused(RequestCode.SEND_MESSAGE_V2, 0, lag_s=SENDER_TIMEOUT_MS / 1000 + 0.1)


def test_the_table_answers_what_the_stage_says_without_calling_the_processor():
    table = RequestTable("broker")
    table.fill(
        {RequestCode.SEND_MESSAGE_V2: lambda request: response(request.command, ResponseCode.SUCCESS)},
        stages=[Overload(FakeLag(10.0)).check],
    )
    wire = Wire()
    table.requests_received(wire, [Command(code=RequestCode.SEND_MESSAGE_V2, opaque=7)])
    (answer,) = wire.sent
    assert (answer.code, answer.opaque) == (ResponseCode.SYSTEM_BUSY, 7)
    assert answer.remark == (
        "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: 10000ms, size of queue: 0"
    )


@pytest.mark.parametrize("code", [RequestCode.HEART_BEAT, RequestCode.LOCK_BATCH_MQ])
def test_a_body_that_takes_too_long_is_refused_with_what_to_do(code):
    overload = Overload(FakeLag())
    overload.check(Request(Command(code=code, body=bytes(BODY_BYTES_MAX)), Wire()))
    with pytest.raises(MessageError, match="1048577 bytes, of 1048576 allowed: spread it over several"):
        overload.check(Request(Command(code=code, body=bytes(BODY_BYTES_MAX + 1)), Wire()))


def test_the_body_of_a_send_is_its_processors_matter():
    Overload(FakeLag()).check(Request(Command(code=RequestCode.SEND_MESSAGE_V2, body=bytes(16_000_000)), Wire()))


def test_what_all_clients_subscribe_to_is_bounded_and_known_clients_beat_on():
    overload = Overload(FakeLag(), heartbeats_bytes_max=100)
    known, new = Wire(), Wire()

    def beat(wire: Wire, size: int) -> None:
        overload.check(Request(Command(code=RequestCode.HEART_BEAT, body=bytes(size)), wire))

    beat(known, 80)
    with pytest.raises(MessageError, match="all clients together") as refused:
        beat(new, 30)
    assert refused.value.response_code == ResponseCode.SYSTEM_BUSY
    beat(known, 10)
    beat(known, 80)
    beat(new, 20)
    overload.connection_lost(known)
    overload.connection_lost(known)
    beat(new, 100)
