"""A hosted instance whose database is away: the lease never delays the consumer."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import uuid
from collections.abc import Iterator

import pytest
from django.db import OperationalError

from consumer.hosting.instance import LeaseKeeper, StopSignals, run, run_in_process
from consumer.models import DesiredState
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


class FakeRow:
    """A lease's row without a database; `error` is raised while that is away."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.desired_state = DesiredState.RUN
        self.error: Exception | None = None

    def mark_running(self, lease_id: uuid.UUID, client_id: str) -> None:
        self._step("mark_running")

    def heartbeat(self, lease_id: uuid.UUID) -> DesiredState:
        self._step("heartbeat")
        return self.desired_state

    def mark_stopping(self, lease_id: uuid.UUID) -> None:
        self._step("mark_stopping")

    def end(self, lease_id: uuid.UUID, reason: str, *, is_failure: bool = False) -> bool:
        self._step(f"end: {reason} {is_failure}")
        return True

    def _step(self, name: str) -> None:
        if self.error is not None:
            raise self.error
        self.steps.append(name)


class Instance:
    """A run of an instance in a task."""

    def __init__(
        self, start_error: Exception | None = None, database_error: Exception | None = None, hand_over_s: float = 60
    ) -> None:
        self.row = FakeRow()
        self.row.error = database_error
        self.consumer = FakeConsumer(start_error)
        self.signals = StopSignals(ShutdownSignal(), ShutdownSignal())
        self.terminated = asyncio.Event()
        keeper = LeaseKeeper(LEASE, self.row, heartbeat_interval_s=0.01)
        self._task = asyncio.create_task(run(self.consumer, keeper, self.signals, self.terminated, hand_over_s))

    async def ended(self) -> None:
        await asyncio.wait_for(self._task, 60)
        self.signals.shutdown.close()
        self.signals.cold.close()


async def test_an_instance_ends_when_its_lease_asks_for_it() -> None:
    instance = Instance()
    await eventually(lambda: "heartbeat" in instance.row.steps)
    instance.row.desired_state = DesiredState.STOP
    await instance.ended()
    assert instance.consumer.steps == ["start", "stop"]
    assert instance.row.steps[0] == "mark_running"
    assert instance.row.steps[-2:] == ["mark_stopping", "end: it was asked to stop False"]


@pytest.mark.slow
async def test_an_instance_whose_worker_shuts_down_goes_on_until_another_runs() -> None:
    instance = Instance()
    await eventually(lambda: "heartbeat" in instance.row.steps)
    instance.signals.shutdown.set()
    looked = len(instance.row.steps)
    await eventually(lambda: len(instance.row.steps) > looked + 2)
    assert instance.consumer.steps == ["start"]
    instance.row.desired_state = DesiredState.STOP
    await instance.ended()
    assert instance.row.steps[-1] == "end: its worker stopped False"


@pytest.mark.parametrize("how", ["late", "cold"])
async def test_an_instance_that_nobody_takes_over_in_time_or_whose_worker_shuts_down_cold_ends(how: str) -> None:
    instance = Instance(hand_over_s=0.05 if how == "late" else 60)
    await eventually(lambda: "heartbeat" in instance.row.steps)
    if how == "cold":
        instance.signals.cold.set()
    instance.signals.shutdown.set()
    await instance.ended()
    assert instance.consumer.steps == ["start", "stop"]


@pytest.mark.slow
async def test_sigterm_to_the_whole_process_group_hands_over_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consumer.hosting.instance.WORKER_HEARS_WITHIN_S", 60)
    instance = Instance()
    await eventually(lambda: "heartbeat" in instance.row.steps)
    instance.terminated.set()
    instance.signals.shutdown.set()
    looked = len(instance.row.steps)
    await eventually(lambda: len(instance.row.steps) > looked + 2)
    instance.row.desired_state = DesiredState.STOP
    await instance.ended()
    assert instance.row.steps[-1] == "end: its worker stopped False"


async def test_an_instance_ends_at_once_when_its_worker_shuts_down_also_without_a_database() -> None:
    instance = Instance(database_error=OperationalError("no such server"))
    await eventually(lambda: instance.consumer.steps)
    instance.signals.shutdown.set()
    await instance.ended()
    assert instance.consumer.steps == ["start", "stop"]


@pytest.mark.slow
async def test_an_instance_stops_its_consumer_when_its_process_is_terminated() -> None:
    instance = Instance()
    await eventually(lambda: "heartbeat" in instance.row.steps)
    instance.terminated.set()
    await instance.ended()
    assert instance.consumer.steps == ["start", "stop"]
    assert instance.row.steps[-1] == "end: its process was terminated False"


async def test_an_instance_goes_on_while_the_database_is_away_and_marks_its_row_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    instance = Instance(database_error=OperationalError("no such server"))
    await eventually(lambda: "consuming goes on" in caplog.text)
    assert instance.consumer.steps == ["start"]
    instance.row.error = None
    await eventually(lambda: instance.row.steps[:2] == ["mark_running", "heartbeat"])
    instance.signals.cold.set()
    instance.signals.shutdown.set()
    await instance.ended()
    assert instance.row.steps[-1] == "end: its worker stopped False"


async def test_an_instance_that_fails_writes_its_error() -> None:
    instance = Instance(start_error=ValueError("no topic"))
    await instance.ended()
    assert instance.row.steps == ["end: ValueError: no topic True"]


@pytest.fixture
def sigterms() -> Iterator[list[int]]:
    """Those that the process gets where no instance runs."""
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: seen.append(number))
    yield seen
    signal.signal(signal.SIGTERM, before)


def test_sigterm_ends_the_run_and_takes_its_effect_afterwards(sigterms: list[int]) -> None:
    async def until(terminated: asyncio.Event) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await terminated.wait()
        assert sigterms == []

    run_in_process(until)
    assert sigterms == [signal.SIGTERM]


def test_sigterm_while_the_event_loop_of_an_ended_run_closes_takes_its_effect_too(sigterms: list[int]) -> None:
    has_ended = threading.Event()

    def terminate() -> None:
        has_ended.wait()
        os.kill(os.getpid(), signal.SIGTERM)

    async def ended_before_its_thread(terminated: asyncio.Event) -> None:
        asyncio.get_running_loop().run_in_executor(None, terminate)
        asyncio.current_task().add_done_callback(lambda _: has_ended.set())

    run_in_process(ended_before_its_thread)
    assert sigterms == [signal.SIGTERM]


def test_a_run_that_nobody_terminates_leaves_sigterm_as_it_was(sigterms: list[int]) -> None:
    async def ended(terminated: asyncio.Event) -> None:
        pass

    run_in_process(ended)
    assert sigterms == []
    signal.raise_signal(signal.SIGTERM)
    assert sigterms == [signal.SIGTERM]
