"""A cluster followed in a thread with an event loop of its own, as the follower's process does it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections
from django.utils import timezone

from mqadmin.observing import leases
from mqadmin.observing.database_threads import DatabaseThreads
from mqadmin.observing.following import PACE, ClusterFollower, Follower, Pace
from remoting.shutdown_signal import ShutdownSignal


@contextmanager
def follower_thread(*, stopped_within_s: float, pace: Pace = PACE) -> Iterator[threading.Thread]:
    """Follows all clusters; raises AssertionError when it does not stop in time."""
    holder = leases.grant(timezone.now())
    assert holder is not None
    shutdown = ShutdownSignal()

    def run() -> None:
        try:
            asyncio.run(Follower(holder, "following@here", shutdown.wait, pace).run())
        finally:
            connections.close_all()

    # One that does not stop fails its test, and the run goes on to its end.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        shutdown.set()
        thread.join(stopped_within_s)
        is_stopped = not thread.is_alive()
    shutdown.close()
    assert is_stopped


def follow_one(cluster_id: int, namesrv: str) -> None:
    """Follows one cluster until its follower ends by itself."""

    async def run() -> None:
        threads = DatabaseThreads("follow", 1)
        try:
            await ClusterFollower(cluster_id, namesrv, threads).run()
        finally:
            await threads.close()

    asyncio.run(run())
