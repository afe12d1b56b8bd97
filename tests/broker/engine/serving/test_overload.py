"""What is refused because it came too late, and what never is."""

from __future__ import annotations

import asyncio
import time

import pytest

from broker.engine.serving import overload as overload_module
from broker.engine.serving.overload import (
    BEAT_INTERVAL_S,
    BODY_BYTES_MAX,
    PULL_WAIT_MS_MAX,
    SEND_WAIT_MS_MAX,
    SENDER_TIMEOUT_MS,
    WAIT_MS_MAX,
    LoopBeat,
    Overload,
)
from broker.engine.serving.requests import RequestTable
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from tests.support.broker_parts import Wire
from tests.support.waiting import eventually


class FakeBeat:
    def __init__(self, stall_s: float = 0.0) -> None:
        self._stall_s = stall_s

    def stall_s(self, now_s: float) -> float:
        return self._stall_s


def is_refused(code: int, waited_ms: float, stall_s: float = 0.0) -> bool:
    wire = Wire()
    wire.waited_s = waited_ms / 1000
    try:
        Overload(FakeBeat(stall_s)).check(Command(code=code), wire)
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


@pytest.mark.parametrize("code", [code for code in RequestCode if code not in WAIT_MS_MAX])
def test_what_saves_work_later_is_never_refused(code):
    assert not is_refused(code, 3_600_000, stall_s=3600)


def test_a_send_that_lay_in_the_kernel_is_refused_when_its_sender_must_have_given_up():
    assert not is_refused(RequestCode.SEND_MESSAGE_V2, 0, stall_s=SENDER_TIMEOUT_MS / 1000 - 0.1)
    assert is_refused(RequestCode.SEND_MESSAGE_V2, 0, stall_s=SENDER_TIMEOUT_MS / 1000 + 0.1)


def test_the_table_answers_what_the_check_says_without_calling_the_processor():
    table = RequestTable("broker")
    table.fill({RequestCode.SEND_MESSAGE_V2: lambda request: response(request.command, ResponseCode.SUCCESS)})
    table.check = Overload(FakeBeat(10.0)).check
    wire = Wire()
    table.requests_received(wire, [Command(code=RequestCode.SEND_MESSAGE_V2, opaque=7)])
    (answer,) = wire.sent
    assert (answer.code, answer.opaque) == (ResponseCode.SYSTEM_BUSY, 7)
    assert answer.remark == (
        "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: 10000ms, size of queue: 0"
    )


async def test_the_beat_sees_a_stall_while_what_came_meanwhile_is_read_and_forgets_it_then(caplog, monkeypatch):
    monkeypatch.setattr(overload_module, "STALL_TOLD_S", BEAT_INTERVAL_S)
    loop = asyncio.get_running_loop()
    beat = LoopBeat()
    beat.start()
    await asyncio.sleep(0)
    assert beat.stall_s(loop.time()) <= 0
    seen: list[float] = []
    loop.call_later(2 * BEAT_INTERVAL_S, lambda: seen.append(beat.stall_s(loop.time())))
    time.sleep(3 * BEAT_INTERVAL_S)  # noqa: ASYNC251 - the stall itself
    await eventually(lambda: seen)
    assert seen[0] >= 1.9 * BEAT_INTERVAL_S
    assert "held up for 0." in caplog.text
    await eventually(lambda: beat.stall_s(loop.time()) < BEAT_INTERVAL_S)
    beat.stop()


@pytest.mark.parametrize("code", [RequestCode.HEART_BEAT, RequestCode.LOCK_BATCH_MQ])
def test_a_body_that_takes_too_long_is_refused_with_what_to_do(code):
    overload = Overload(FakeBeat())
    overload.check(Command(code=code, body=bytes(BODY_BYTES_MAX)), Wire())
    with pytest.raises(MessageError, match="1048577 bytes, of 1048576 allowed: spread it over several"):
        overload.check(Command(code=code, body=bytes(BODY_BYTES_MAX + 1)), Wire())


def test_the_body_of_a_send_is_its_processors_matter():
    Overload(FakeBeat()).check(Command(code=RequestCode.SEND_MESSAGE_V2, body=bytes(16_000_000)), Wire())


def test_what_all_clients_subscribe_to_is_bounded_and_known_clients_beat_on(monkeypatch):
    monkeypatch.setattr(overload_module, "HEARTBEATS_BYTES_MAX", 100)
    overload = Overload(FakeBeat())
    known, new = Wire(), Wire()

    def beat(wire: Wire, size: int) -> None:
        overload.check(Command(code=RequestCode.HEART_BEAT, body=bytes(size)), wire)

    beat(known, 80)
    with pytest.raises(MessageError, match="all clients together") as refused:
        beat(new, 30)
    assert refused.value.response_code == ResponseCode.SYSTEM_BUSY
    beat(known, 10)
    beat(known, 80)
    beat(new, 20)
    overload.forget(known)
    overload.forget(known)
    beat(new, 100)
