"""What Apache's Java producers make of a broker that has too much to do, and of a disk that is slow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.engine.sending import flush_waiting
from broker.engine.sending.flush_waiting import FlushWaiting
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from tests.support.broker_in_thread import BrokerInThread
from tests.support.java_client import JavaClient, JavaError

pytestmark = [pytest.mark.journey, pytest.mark.java]

BUSY = "[OVERLOAD]system busy, start flow control for a while"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerInThread]:
    with BrokerInThread(tmp_path / "store") as broker:
        yield broker


@pytest.fixture
def busy_java(java_process: JavaClient, broker: BrokerInThread) -> JavaClient:
    return java_process.on(broker.namesrv)


def refusing(monkeypatch: pytest.MonkeyPatch, times: Callable[[int], bool]) -> list[int]:
    """Room for a send is refused as long as `times` says so of its number; the numbers that were asked for."""
    asked: list[int] = []

    def check_room(_: FlushWaiting) -> None:
        asked.append(len(asked))
        if times(asked[-1]):
            raise MessageError(BUSY, ResponseCode.SYSTEM_BUSY)

    monkeypatch.setattr(FlushWaiting, "check_room", check_room)
    return asked


@pytest.mark.parametrize("java_process", ["5.4.0"], indirect=True)
def test_a_producer_that_hears_busy_tries_again_and_its_message_is_stored_once(
    busy_java: JavaClient, broker: BrokerInThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = refusing(monkeypatch, lambda number: number == 0)
    busy_java.producer("busy-producer")
    (sent,) = busy_java.send("busy-producer", "busy-once")
    assert sent["status"] == "SEND_OK"
    assert len(asked) == 2
    assert broker.stored("busy-once") == 1
    busy_java.stop("busy-producer")


@pytest.mark.parametrize("java_process", ["4.9.8"], indirect=True)
def test_an_old_producer_that_hears_busy_tells_its_application_at_once(
    busy_java: JavaClient, broker: BrokerInThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = refusing(monkeypatch, lambda number: number == 0)
    busy_java.producer("busy-producer")
    with pytest.raises(JavaError, match=r"CODE: 2 .*\[OVERLOAD\]system busy"):
        busy_java.send("busy-producer", "busy-once")
    assert len(asked) == 1
    busy_java.stop("busy-producer")


@pytest.mark.parametrize("java_process", ["5.4.0"], indirect=True)
def test_a_producer_that_hears_nothing_but_busy_says_so(
    busy_java: JavaClient, broker: BrokerInThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = refusing(monkeypatch, lambda _: True)
    busy_java.producer("busy-producer")
    with pytest.raises(JavaError, match=r"Send \[3\] times, still failed") as failed:
        busy_java.send("busy-producer", "busy-ever")
    assert failed.value.code == ResponseCode.SYSTEM_BUSY
    assert len(asked) == 3
    assert broker.stored("busy-ever") == 0
    busy_java.stop("busy-producer")


@pytest.mark.parametrize("java_process", ["5.4.0"], indirect=True)
def test_a_producer_hears_that_the_disk_is_slow_and_the_message_is_there(
    busy_java: JavaClient, broker: BrokerInThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flush_waiting, "FLUSH_TIMEOUT_S", 0.1)
    monkeypatch.setattr(broker.runtime.broker.store, "when_flushed", lambda end, callback: None)
    busy_java.producer("slow-producer")
    (sent,) = busy_java.send("slow-producer", "slow-disk")
    assert sent["status"] == "FLUSH_DISK_TIMEOUT"
    assert broker.stored("slow-disk") == 1
    busy_java.stop("slow-producer")
    monkeypatch.undo()
