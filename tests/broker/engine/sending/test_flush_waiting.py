"""Sends that wait for the disk: bounded in number, bytes and time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.engine.sending import flush_waiting as module
from broker.engine.sending.accepting import refusal
from broker.engine.sending.flush_waiting import FlushTimedOut, FlushWaiting
from broker.engine.store.errors import StoreFailed
from broker.engine.store.values import Appended
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from tests.support.waiting import eventually


class SlowDisk:
    """A store whose flushes end when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[Exception | None], None]] = []

    def when_flushed(self, end: int, callback: Callable[[Exception | None], None]) -> None:
        self.waiting.append(callback)

    def flush(self, error: Exception | None = None) -> None:
        waiting, self.waiting = self.waiting, []
        for callback in waiting:
            callback(error)


class Sends:
    def __init__(self) -> None:
        self.disk = SlowDisk()
        self.waiting = FlushWaiting(self.disk, refusal)
        self.answers: list[object] = []

    def wait(self, count: int = 1, size: int = 100) -> None:
        appended = Appended("orders", 0, 0, 0, size, 0, 0)
        self.waiting.wait([(self.answers.append, [appended]) for _ in range(count)])


@pytest.fixture
async def sends():
    return Sends()


async def test_sends_are_answered_when_the_disk_has_them(sends):
    sends.wait(3)
    assert sends.waiting.sends_count == 3
    sends.disk.flush()
    assert [type(answer) for answer in sends.answers] == [list] * 3
    assert (sends.waiting.sends_count, sends.waiting.waiting_bytes) == (0, 0)


async def test_sends_hear_of_a_disk_that_failed(sends):
    sends.wait()
    sends.disk.flush(StoreFailed("the disk failed"))
    (answer,) = sends.answers
    assert answer.response_code == ResponseCode.SERVICE_NOT_AVAILABLE


async def test_new_sends_are_refused_while_too_many_wait_and_taken_again_after(sends, monkeypatch):
    monkeypatch.setattr(module, "WAITING_SENDS_MAX", 5)
    sends.wait(5)
    with pytest.raises(MessageError, match=r"^\[OVERLOAD\]system busy, start flow control for a while$") as refused:
        sends.waiting.check_room()
    assert refused.value.response_code == ResponseCode.SYSTEM_BUSY
    sends.disk.flush()
    sends.waiting.check_room()


async def test_new_sends_are_refused_while_too_many_bytes_wait(sends, monkeypatch):
    monkeypatch.setattr(module, "WAITING_BYTES_MAX", 200)
    sends.wait(2, size=100)
    with pytest.raises(MessageError, match=r"^\[REJECTREQUEST\]system busy, start flow control for a while$"):
        sends.waiting.check_room()


async def test_a_flush_that_takes_too_long_is_told_and_still_counts_until_it_ends(sends, monkeypatch):
    monkeypatch.setattr(module, "FLUSH_TIMEOUT_S", 0.03)
    sends.wait(2)
    sends.wait(1)
    await eventually(lambda: len(sends.answers) == 3)
    assert all(isinstance(answer, FlushTimedOut) for answer in sends.answers)
    assert sends.waiting.sends_count == 3
    sends.disk.flush()
    assert len(sends.answers) == 3, "nobody is answered twice"
    assert sends.waiting.sends_count == 0


async def test_the_next_ones_time_out_at_their_own_time(sends, monkeypatch):
    monkeypatch.setattr(module, "FLUSH_TIMEOUT_S", 0.02)
    sends.wait()
    sends.disk.flush()
    monkeypatch.setattr(module, "FLUSH_TIMEOUT_S", 0.05)
    sends.wait()
    assert len(sends.answers) == 1
    await eventually(lambda: len(sends.answers) == 2)
    assert isinstance(sends.answers[1], FlushTimedOut)
