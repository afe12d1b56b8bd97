"""Runs one hosted instance, from the claim of its lease to its end: a consumer on an event loop, its lease beside it.

The lease never delays the consumer: a thread of its own waits for a database that is slow or away, and consuming goes
on. An instance ends when its lease asks for it, when its worker shuts down, or by an error of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar
from uuid import UUID

from django.db import close_old_connections, connections

from consumer.assembly import make_consumer
from consumer.conf import namesrv
from consumer.engine.push_consumer import PushConsumer
from consumer.hosting import leases
from consumer.hosting.leases import Worker
from consumer.listener import GroupSpec
from consumer.models import Word
from remoting.shutdown_signal import ShutdownSignal

logger = logging.getLogger(__name__)

T = TypeVar("T")

BEAT_INTERVAL_S = 2.0
# How long an instance that has ended waits for the database to hear of it.
LAST_WORD_TIMEOUT_S = 5.0


def host(lease_id: UUID, worker: Worker, specs: Mapping[str, GroupSpec], shutdown: ShutdownSignal) -> None:
    """Runs the instance until it is to stop; returns at once when the lease is not ours to run."""
    lease = leases.claim(lease_id, worker)
    if lease is None:
        logger.info("lease %s was taken or called off before", lease_id)
        return
    spec = specs.get(lease.group.group)
    if spec is None:
        reason = f"this worker's code declares no group {lease.group.group!r}"
        leases.end(lease_id, reason, is_failure=True)
        logger.error("lease %s: %s", lease_id, reason)
        return
    connections.close_all()  # this thread needs none until the end
    asyncio.run(_host(lease_id, make_consumer(spec, namesrv()), shutdown))


async def _host(lease_id: UUID, consumer: PushConsumer, shutdown: ShutdownSignal) -> None:
    keeper = LeaseKeeper(lease_id)
    reason, is_failure = "", False
    try:
        await consumer.start()
        reason = await _until_stopped(keeper, consumer, shutdown)
        keeper.submit(leases.mark_stopping)
        await consumer.stop()
    except Exception as error:
        logger.exception("lease %s: the instance failed", lease_id)
        reason, is_failure = f"{type(error).__name__}: {error}", True
    finally:
        await keeper.close(partial(leases.end, reason=reason or "cancelled", is_failure=is_failure))


async def _until_stopped(keeper: LeaseKeeper, consumer: PushConsumer, shutdown: ShutdownSignal) -> str:
    """Returns the reason."""
    waits = {
        asyncio.create_task(shutdown.wait(), name="shutdown"): "its worker stopped",
        asyncio.create_task(keeper.keep(consumer.client_id), name="lease"): "it was asked to stop",
    }
    try:
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waits:
            task.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
    for task in done:
        task.result()
    return waits[done.pop()]


class LeaseKeeper:
    """Talks to the database in one thread, in order, without ever holding up the event loop."""

    def __init__(self, lease_id: UUID) -> None:
        self._lease_id = lease_id
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lease")

    async def keep(self, client_id: str) -> None:
        """Says that the instance runs, again and again; returns when it is wanted to stop."""
        is_said = False
        while True:
            try:
                if not is_said:
                    await self._run(partial(leases.mark_running, client_id=client_id))
                    is_said = True
                if await self._run(leases.beat) == Word.STOP:
                    return
            except Exception as error:
                logger.warning("lease %s: the database does not answer, consuming goes on: %s", self._lease_id, error)
            await asyncio.sleep(BEAT_INTERVAL_S)

    def submit(self, step: Callable[[UUID], object]) -> None:
        """Does it soon; a failure is logged."""
        self._thread.submit(self._logged, step)

    async def close(self, last: Callable[[UUID], object]) -> None:
        """Does `last` if the database lets it happen in time."""
        try:
            async with asyncio.timeout(LAST_WORD_TIMEOUT_S):
                await asyncio.shield(self._run(last))
        except Exception as error:
            logger.warning("lease %s could not be ended, supervision will: %r", self._lease_id, error)
        self._thread.submit(connections.close_all)
        self._thread.shutdown(wait=False, cancel_futures=False)

    def _run(self, step: Callable[[UUID], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._thread, self._fresh, step)

    def _fresh(self, step: Callable[[UUID], T]) -> T:
        close_old_connections()
        return step(self._lease_id)

    def _logged(self, step: Callable[[UUID], object]) -> None:
        try:
            self._fresh(step)
        except Exception as error:
            logger.warning("lease %s: %s", self._lease_id, error)
