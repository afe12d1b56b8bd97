"""A hosted instance whose database is away: the lease never stands in the consumer's way."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from django.db import OperationalError

from consumer.hosting import instance, leases
from consumer.models import Word
from remoting.shutdown_signal import ShutdownSignal
from tests.support.waiting import eventually

LEASE = uuid.uuid4()


class FakeConsumer:
    client_id = "me"

    def __init__(self, start_error: Exception | None = None) -> None:
        self.steps: list[str] = []
        self._start_error = start_error

    async def start(self) -> None:
        self.steps.append("start")
        if self._start_error is not None:
            raise self._start_error

    async def stop(self) -> None:
        self.steps.append("stop")


class FakeLeases:
    """Answers instead of the database; `error` is what it raises while it is away."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[str] = []
        self.word = Word.RUN
        self.error: Exception | None = None
        for name in ("mark_running", "mark_stopping", "end"):
            monkeypatch.setattr(leases, name, self._step(name))
        monkeypatch.setattr(leases, "beat", self._beat)
        monkeypatch.setattr(instance, "BEAT_INTERVAL_S", 0.01)
        # No database is touched here, also not to look for old connections.
        monkeypatch.setattr(instance, "close_old_connections", lambda: None)

    def _step(self, name: str) -> object:
        def step(lease_id: uuid.UUID, **details: object) -> None:
            if self.error is not None:
                raise self.error
            self.steps.append(name if name != "end" else f"end: {details['reason']} {details['is_failure']}")

        return step

    def _beat(self, lease_id: uuid.UUID) -> Word:
        if self.error is not None:
            raise self.error
        self.steps.append("beat")
        return self.word


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> FakeLeases:
    return FakeLeases(monkeypatch)


async def test_an_instance_ends_when_its_lease_says_stop(rows: FakeLeases) -> None:
    consumer = FakeConsumer()
    hosting = asyncio.create_task(instance._host(LEASE, consumer, ShutdownSignal()))  # type: ignore[arg-type]
    await eventually(lambda: "beat" in rows.steps)
    rows.word = Word.STOP
    await asyncio.wait_for(hosting, 5)
    assert consumer.steps == ["start", "stop"]
    assert rows.steps[0] == "mark_running"
    assert rows.steps[-2:] == ["mark_stopping", "end: it was asked to stop False"]


async def test_an_instance_ends_at_once_when_its_worker_stops_also_without_a_database(rows: FakeLeases) -> None:
    rows.error = OperationalError("no such server")
    consumer, shutdown = FakeConsumer(), ShutdownSignal()
    hosting = asyncio.create_task(instance._host(LEASE, consumer, shutdown))  # type: ignore[arg-type]
    await eventually(lambda: consumer.steps)
    shutdown.set()
    await asyncio.wait_for(hosting, 5)
    assert consumer.steps == ["start", "stop"]


async def test_an_instance_goes_on_while_the_database_is_away_and_says_so_when_it_is_back(
    rows: FakeLeases, caplog: pytest.LogCaptureFixture
) -> None:
    rows.error = OperationalError("no such server")
    consumer, shutdown = FakeConsumer(), ShutdownSignal()
    hosting = asyncio.create_task(instance._host(LEASE, consumer, shutdown))  # type: ignore[arg-type]
    await eventually(lambda: "consuming goes on" in caplog.text)
    assert consumer.steps == ["start"]
    rows.error = None
    await eventually(lambda: rows.steps[:2] == ["mark_running", "beat"])
    shutdown.set()
    await asyncio.wait_for(hosting, 5)
    assert rows.steps[-1] == "end: its worker stopped False"


async def test_an_instance_that_fails_says_why(rows: FakeLeases) -> None:
    await instance._host(LEASE, FakeConsumer(ValueError("no topic")), ShutdownSignal())  # type: ignore[arg-type]
    assert rows.steps == ["end: ValueError: no topic True"]
