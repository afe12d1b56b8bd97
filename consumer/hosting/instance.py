"""Runs one hosted instance, from the claim of its lease to its end: a consumer on an event loop, its lease beside it.

The lease never delays the consumer: a thread of its own waits for a database that is slow or away, and consuming goes
on. An instance ends when its lease asks for it, when its process gets SIGTERM, or by an error of its own. When its
worker shuts down it is handed over: it goes on until its lease asks it to stop, because another runs elsewhere or none
can (`loops_worker.py`), for HAND_OVER_S at most; at once when the database does not answer or the shutdown is cold.
SIGTERM reaches a process of a prefork pool when it is sent to the whole process group (systemd,
containers), or when Celery terminates the task; the instance commits its offsets, then the signal takes the effect that
it has in any process of the pool (`pool_process.py`).
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any, Protocol, TypeVar
from uuid import UUID

from django.db import close_old_connections, connections

from consumer.assembly import make_consumer
from consumer.conf import namesrv
from consumer.delivery import writing as delivery_writing
from consumer.delivery.counting import DeliveryCounts
from consumer.delivery.writing import WRITE_INTERVAL_S
from consumer.engine.clock import now_ms
from consumer.hosting import leases
from consumer.hosting.leases import Worker
from consumer.listener import GroupSpec
from consumer.models import DesiredState
from remoting.shutdown_signal import ShutdownSignal

logger = logging.getLogger(__name__)

T = TypeVar("T")

HEARTBEAT_INTERVAL_S = 2.0
# How long an instance that has ended waits for the database.
END_TIMEOUT_S = 5.0
# While its worker shuts down, how long an instance goes on for another to take its place, and how often it looks
# whether that is so: a deploy is to pause no queue, and whatever grants the worker 30 s to stop must not lose patience.
HAND_OVER_S = 6.0
HAND_OVER_LOOK_S = 0.3
# How long a process that gets SIGTERM waits for word that it is its whole worker that is to stop.
WORKER_HEARS_WITHIN_S = 0.5


@dataclass(frozen=True, slots=True)
class StopSignals:
    """Set by the worker's main process: `shutdown` when it stops, `cold` besides when its tasks are not waited for."""

    shutdown: ShutdownSignal
    cold: ShutdownSignal


class HostedConsumer(Protocol):
    @property
    def client_id(self) -> str: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class LeaseRow(Protocol):
    """The steps of a lease's row, as the module `leases` takes them in the database."""

    def mark_running(self, lease_id: UUID, client_id: str) -> None: ...

    def heartbeat(self, lease_id: UUID) -> DesiredState: ...

    def mark_stopping(self, lease_id: UUID) -> None: ...

    def end(self, lease_id: UUID, reason: str, *, is_failure: bool = False) -> bool: ...


def host(lease_id: UUID, worker: Worker, specs: Mapping[str, GroupSpec], signals: StopSignals) -> None:
    """Runs the instance until it is to stop; returns at once when another worker has the lease, or it was withdrawn."""
    lease = leases.claim(lease_id, worker)
    if lease is None:
        logger.info("lease %s was taken or withdrawn before", lease_id)
        return
    spec = specs.get(lease.group.key)
    if spec is None:
        reason = f"this worker's code declares no group {lease.group.key!r}"
        leases.end(lease_id, reason, is_failure=True)
        logger.error("lease %s: %s", lease_id, reason)
        return
    connections.close_all()  # this thread needs none until the end
    run_in_process(lambda terminated: _run_hosted(lease_id, spec, signals, terminated))


async def _run_hosted(lease_id: UUID, spec: GroupSpec, signals: StopSignals, terminated: asyncio.Event) -> None:
    delivered = DeliveryCounts()
    consumer = make_consumer(spec, namesrv(spec.cluster), record_delivery=delivered)

    def write_delivered(client_id: str) -> None:
        delivery_writing.write(spec.cluster, spec.group, client_id, delivered, now_ms())

    await run(consumer, LeaseKeeper(lease_id, write_delivered=write_delivered), signals, terminated)


def run_in_process(make_run: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Runs on an event loop; SIGTERM sets the event first, and takes its effect when the run has ended.

    The loop's own `add_signal_handler` is not for this: when the loop closes it leaves SIGTERM to kill the process.
    """
    if threading.current_thread() is not threading.main_thread():  # a pool of threads: Celery handles SIGTERM
        asyncio.run(make_run(asyncio.Event()))
        return
    is_terminated = False
    before = signal.getsignal(signal.SIGTERM)
    try:
        with asyncio.Runner() as runner:
            loop, terminated = runner.get_loop(), asyncio.Event()

            def note(_number: int, _frame: FrameType | None) -> None:
                nonlocal is_terminated
                is_terminated = True
                if not loop.is_closed():
                    loop.call_soon_threadsafe(terminated.set)

            signal.signal(signal.SIGTERM, note)
            runner.run(make_run(terminated))
    finally:
        signal.signal(signal.SIGTERM, before)
    if is_terminated:
        signal.raise_signal(signal.SIGTERM)


async def run(
    consumer: HostedConsumer,
    keeper: LeaseKeeper,
    signals: StopSignals,
    terminated: asyncio.Event,
    hand_over_s: float = HAND_OVER_S,
) -> None:
    """Runs `consumer` until its lease asks it to stop, its worker's shutdown has handed it over, or `terminated`."""
    reason, is_failure = "", False
    try:
        await consumer.start()
        reason = await _until_stopped(keeper, consumer.client_id, signals, terminated, hand_over_s)
        keeper.mark_stopping()
        await consumer.stop()
    except Exception as error:
        logger.exception("lease %s: the instance failed", keeper.lease_id)
        reason, is_failure = f"{type(error).__name__}: {error}", True
    finally:
        await keeper.end(reason or "cancelled", is_failure=is_failure)


async def _until_stopped(
    keeper: LeaseKeeper, client_id: str, signals: StopSignals, terminated: asyncio.Event, hand_over_s: float
) -> str:
    """Returns the reason."""
    waits = {
        asyncio.create_task(_handed_over(keeper, signals.shutdown, hand_over_s), name="shutdown"): "its worker stopped",
        asyncio.create_task(signals.cold.wait(), name="cold shutdown"): "its worker stopped",
        asyncio.create_task(_terminated(terminated, signals), name="SIGTERM"): "its process was terminated",
        asyncio.create_task(keeper.keep_running(client_id), name="lease"): "it was asked to stop",
    }
    try:
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waits:
            task.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
    for task in done:
        task.result()
    return "its worker stopped" if signals.shutdown.is_set else waits[done.pop()]


async def _handed_over(keeper: LeaseKeeper, shutdown: ShutdownSignal, hand_over_s: float) -> None:
    """Waits for the worker's shutdown, and then for as long as others have to take the instance over."""
    await shutdown.wait()
    keeper.worker_stops()
    await asyncio.sleep(hand_over_s)


async def _terminated(terminated: asyncio.Event, signals: StopSignals) -> None:
    """Returns when this process alone is to end; never when its worker stops, which decides then."""
    await terminated.wait()
    try:
        async with asyncio.timeout(WORKER_HEARS_WITHIN_S):
            await signals.shutdown.wait()
    except TimeoutError:
        return
    await asyncio.Event().wait()


class LeaseKeeper:
    """Writes the lease's row in a thread of its own, step after step, without blocking the event loop."""

    def __init__(
        self,
        lease_id: UUID,
        row: LeaseRow = leases,
        heartbeat_interval_s: float = HEARTBEAT_INTERVAL_S,
        *,
        write_delivered: Callable[[str], None] | None = None,
        write_interval_s: float = WRITE_INTERVAL_S,
    ) -> None:
        """`write_delivered` is called with the client id every `write_interval_s`, and at the end."""
        self.lease_id = lease_id
        self._row = row
        self._heartbeat_interval_s = heartbeat_interval_s
        self._write_delivered = write_delivered
        self._write_interval_s = write_interval_s
        self._client_id = ""
        self._written_s = time.monotonic()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lease")
        self._worker_stops = asyncio.Event()

    def worker_stops(self) -> None:
        """Has `keep_running` look at the row often from now on, and return when the database does not answer."""
        self._worker_stops.set()

    async def keep_running(self, client_id: str) -> None:
        """Marks the instance as running and sends heartbeats; returns when the row asks it to stop."""
        is_marked = False
        self._client_id = client_id
        while True:
            try:
                if not is_marked:
                    await self._submit(partial(self._row.mark_running, client_id=client_id))
                    is_marked = True
                if await self._submit(self._row.heartbeat) == DesiredState.STOP:
                    return
            except Exception as error:
                if self._worker_stops.is_set():
                    return
                logger.warning("lease %s: the database does not answer, consuming goes on: %s", self.lease_id, error)
            else:
                if time.monotonic() - self._written_s >= self._write_interval_s:
                    self._written_s = time.monotonic()
                    self._write_deliveries()
            await self._pause()

    async def _pause(self) -> None:
        if self._worker_stops.is_set():
            await asyncio.sleep(HAND_OVER_LOOK_S)
            return
        try:
            async with asyncio.timeout(self._heartbeat_interval_s):
                await self._worker_stops.wait()
        except TimeoutError:
            pass

    def mark_stopping(self) -> None:
        """Returns before it is written; a failure is logged."""
        self._submit(self._row.mark_stopping).add_done_callback(self._log_failure)

    async def end(self, reason: str, *, is_failure: bool) -> None:
        """Ends the lease if the database answers in time (else supervision will), and the thread."""
        self._write_deliveries()
        try:
            async with asyncio.timeout(END_TIMEOUT_S):
                await asyncio.shield(self._submit(partial(self._row.end, reason=reason, is_failure=is_failure)))
        except Exception as error:
            logger.warning("lease %s could not be ended, supervision will: %r", self.lease_id, error)
        self._thread.submit(connections.close_all)
        self._thread.shutdown(wait=False, cancel_futures=False)

    def _write_deliveries(self) -> None:
        """Returns before it is written; a failure is logged, and the next one has it all."""
        write = self._write_delivered
        if write is not None and self._client_id:
            self._submit(lambda _lease_id: write(self._client_id)).add_done_callback(self._log_failure)

    def _submit(self, step: Callable[[UUID], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._thread, self._with_fresh_connection, step)

    def _with_fresh_connection(self, step: Callable[[UUID], T]) -> T:
        close_old_connections()
        return step(self.lease_id)

    def _log_failure(self, done: asyncio.Future[None]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            logger.warning("lease %s: %s", self.lease_id, error)
