"""Following our own clusters: what their brokers answer to a watch goes into the rows, within a second.

One process follows all clusters (`Follower`), each by a task of its own (`cluster_following.py`): its requests run on
the event loop, its database work in a few threads that all share (`database_threads.py`), so that neither a slow broker
nor one cluster's large snapshot holds up another. It ends at once when the lease is lost or its process shuts down. A
broker that does not answer is asked again with a growing pause, and the cluster's row has the reason.

A watch waits up to 30 s for news, so an idle broker costs a request per half minute; and nothing is written
without news. The position (`boot`, `revision`) is written in the last transaction of the rows that it stands for, so
whoever takes over goes on exactly there; the broker answers with a snapshot when it does not remember that far.

Progress (queues that grow, offsets that are committed) is written as fast as it is reported, up to
`Pace.rows_per_s_max` for each cluster: after an answer that cost N rows, receivers' included, the next is asked for
N / rows_per_s_max seconds later, and what changes meanwhile comes together.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from datetime import datetime

from django.db import Error as DatabaseError
from django.utils import timezone

from mqadmin.clusters.models import POLLED_KINDS, Cluster
from mqadmin.observing import leases
from mqadmin.observing.cluster_following import ClusterFollower
from mqadmin.observing.database_threads import SHARED_COUNT, DatabaseSteps, DatabaseThreads
from mqadmin.observing.pace import PACE, Pace

logger = logging.getLogger(__name__)


class Follower:
    """All clusters that are not polled. `stopping` returns when the process has to stop."""

    def __init__(
        self, holder: uuid.UUID, worker: str, stopping: Callable[[], Awaitable[None]], pace: Pace = PACE
    ) -> None:
        self._holder = holder
        self._worker = worker
        self._stopping = stopping
        self._pace = pace
        self._true_until: datetime | None = None
        self._tasks: dict[tuple[int, str], asyncio.Task[None]] = {}
        self._threads = DatabaseThreads("follow", SHARED_COUNT)
        # The lease is renewed in time, however much there is to write.
        self._lease_thread = DatabaseThreads("follower lease", 1)
        self._database = DatabaseSteps(self._lease_thread)

    async def run(self) -> None:
        """Returns when the lease is lost, or when it has to stop; then the lease is another's to take."""
        stopping = asyncio.ensure_future(self._stopping())
        keeping = asyncio.ensure_future(self._keep_lease())
        try:
            await asyncio.wait((stopping, keeping), return_when=asyncio.FIRST_COMPLETED)
            if keeping.done():
                keeping.result()
        finally:
            tasks = [stopping, keeping, *self._tasks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._database.run(leases.release, self._holder, timezone.now())
            await self._database.close()
            await self._lease_thread.close()
            await self._threads.close()

    async def _keep_lease(self) -> None:
        """Returns when the lease is lost. What cannot be written now (a busy database) is tried again."""
        self._true_until = await self._database.run(leases.renewed_at)
        while True:
            try:
                if not await self._database.run(leases.renew, self._holder, self._worker, timezone.now()):
                    logger.warning("another process follows the clusters now")
                    return
                self._start_and_stop(await self._database.run(_followable_clusters))
            except DatabaseError as error:
                logger.warning("the follower's lease cannot be renewed: %s; trying again", error)
            await asyncio.sleep(leases.RENEW_INTERVAL_S)

    def _start_and_stop(self, wanted: set[tuple[int, str]]) -> None:
        """Starts and cancels tasks: one for each cluster and address. One that ended by itself is started again."""
        for key, task in list(self._tasks.items()):
            if task.done():
                del self._tasks[key]
            elif key not in wanted:
                task.cancel()
        for cluster_id, namesrv in wanted - self._tasks.keys():
            following = ClusterFollower(cluster_id, namesrv, self._threads, self._pace, true_until=self._true_until)
            self._tasks[cluster_id, namesrv] = asyncio.create_task(following.run(), name=f"follow {namesrv}")


def _followable_clusters() -> set[tuple[int, str]]:
    return set(Cluster.objects.exclude(kind__in=POLLED_KINDS).values_list("pk", "namesrv"))
