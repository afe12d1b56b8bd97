"""Following our own clusters: what their brokers answer to a watch goes into the rows, within a second.

One process follows all clusters (`Follower`), each by a task of its own (`ClusterFollower`): its requests run on the
event loop, its database work in a few threads that all share (`database_threads.py`), so that neither a slow broker
nor one cluster's large snapshot holds up another. It ends at once when the lease is lost or its process shuts down. A
broker that does not answer is asked again with a growing pause, and the cluster's row has the reason.

A watch waits up to 30 s for news, so an idle cluster costs a request per half minute; and nothing is written
without news. The position (`boot`, `revision`) is written in the last transaction of the rows that it stands for, so
whoever takes over goes on exactly there; the broker answers with a snapshot when it does not remember that far.

Progress (queues that grow, offsets that are committed) is written as fast as it is reported, up to
`Pace.rows_per_s_max` for each cluster: after an answer that cost N rows, receivers' included, the next is asked for
N / rows_per_s_max seconds later, and what changes meanwhile comes together.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

import msgspec
from django.db import Error as DatabaseError
from django.utils import timezone

from mqadmin.clusters.models import Broker, Cluster, ClusterKind, ClusterState
from mqadmin.observing import leases, synchroniser
from mqadmin.observing.database_threads import SHARED_COUNT, DatabaseSteps, DatabaseThreads
from mqadmin.observing.gateway import Gateway, GatewayError, NotWatchable
from mqadmin.observing.observation import BrokerObserved
from mqadmin.observing.reachability import note_reachable, note_resumed, note_unreachable
from mqadmin.observing.signals import Ticked, publish, ticked
from mqadmin.observing.watch_observation import moment_or_none, observation_of_watch
from remoting.wire.bodies.route import MASTER_ID, BrokerData
from remoting.wire.bodies.watch import SchedulerState, WatchBody
from remoting.wire.headers.watch import WatchResponseHeader

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often what happens. `rows_per_s_max`: of one cluster, over any longer time, snapshots aside."""

    # As long as our broker lets a watch wait.
    watch_wait_ms: int = 30_000
    # Between two answers, so that a storm of changes costs a bounded number of transactions.
    cycle_s_min: float = 0.1
    rows_per_s_max: float = 500.0
    # What time alone changes is a matter of seconds.
    tick_s: float = 5.0
    backoff_s: tuple[float, ...] = (0.5, 1.0, 2.0, 5.0)


PACE = Pace()


class NotFollowable(Exception):
    """The cluster is polled instead: it is Apache's, or has several masters."""


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


class ClusterFollower:
    """One cluster behind one address. `true_until`: up to when an earlier follower kept its rows true."""

    def __init__(
        self,
        cluster_id: int,
        namesrv: str,
        threads: DatabaseThreads,
        pace: Pace = PACE,
        true_until: datetime | None = None,
    ) -> None:
        self._cluster_id = cluster_id
        self._namesrv = namesrv
        self._pace = pace
        self._true_until = true_until
        # On the present connection.
        self._has_answered = False
        self._database = DatabaseSteps(threads)

    async def run(self) -> None:
        """Runs until it is cancelled, or the cluster is left to polling, or gone."""
        failure_count = 0
        try:
            while True:
                answered_before = self._true_until
                try:
                    await self._follow_connection()
                except NotFollowable as reason:
                    logger.info("%s", reason)
                    return
                except Cluster.DoesNotExist:
                    logger.info("cluster %d was removed; nothing to follow any more", self._cluster_id)
                    return
                except (GatewayError, DatabaseError) as error:
                    await self._give_reason(str(error))
                except Exception as error:  # shown at this cluster; the others go on
                    logger.exception("cluster %d cannot be followed; trying again", self._cluster_id)
                    await self._give_reason(repr(error))
                failure_count = 0 if self._true_until != answered_before else failure_count + 1
                await asyncio.sleep(self._pace.backoff_s[min(failure_count, len(self._pace.backoff_s) - 1)])
        finally:
            await self._database.close()

    async def _follow_connection(self) -> None:
        """Watches until the broker does not answer any more: then raises GatewayError."""
        async with Gateway(self._namesrv) as gateway:
            masters = [broker for broker in await gateway.brokers() if broker.master_addr]
            cluster, broker = await self._database.run(self._begin, masters)
            next_ask_s = next_tick_s = time.monotonic()
            watching: asyncio.Future[tuple[WatchResponseHeader, WatchBody]] | None = None
            try:
                while True:
                    if watching is None and time.monotonic() >= next_ask_s:
                        watching = asyncio.ensure_future(self._watch(gateway, broker))
                    wakes_s = next_tick_s if watching is not None else min(next_tick_s, next_ask_s)
                    pause_s = max(0.0, wakes_s - time.monotonic())
                    if watching is None:
                        await asyncio.sleep(pause_s)
                    else:
                        await asyncio.wait((watching,), timeout=pause_s)
                    if watching is not None and watching.done():
                        header, body = await watching
                        watching = None
                        row_count = await self._database.run(self._write, cluster, broker, header, body)
                        self._true_until = timezone.now()
                        next_ask_s = time.monotonic() + max(self._pace.cycle_s_min, self._rest_s(row_count))
                    if time.monotonic() >= next_tick_s:
                        row_count = await self._database.run(self._tick, cluster)
                        next_tick_s = time.monotonic() + max(self._pace.tick_s, self._rest_s(row_count))
            finally:
                if watching is not None:
                    watching.cancel()
                    await asyncio.gather(watching, return_exceptions=True)

    def _rest_s(self, row_count: int) -> float:
        return row_count / self._pace.rows_per_s_max

    async def _watch(self, gateway: Gateway, broker: Broker) -> tuple[WatchResponseHeader, WatchBody]:
        try:
            return await gateway.watch(
                broker.address, boot=broker.boot, since=broker.revision, wait_ms=self._pace.watch_wait_ms
            )
        except NotWatchable:
            await self._database.run(self._leave_to_polling, "its broker is Apache's")
            raise

    async def _give_reason(self, reason: str) -> None:
        try:
            await self._database.run(self._note_unreachable, reason)
        except (DatabaseError, Cluster.DoesNotExist) as error:
            logger.warning("cluster %d: %s; and that cannot be written: %s", self._cluster_id, reason, error)

    # in a database thread

    def _begin(self, masters: list[BrokerData]) -> tuple[Cluster, Broker]:
        """Returns the cluster's row, and that of its one master."""
        cluster, now = Cluster.objects.get(pk=self._cluster_id), timezone.now()
        if not masters:
            raise GatewayError(f"the name servers {self._namesrv} know no broker: start one")
        if len(masters) > 1:
            self._leave_to_polling(f"{len(masters)} masters")
        master = masters[0]
        if cluster.rocketmq_name != master.cluster:
            cluster.rocketmq_name = master.cluster
            cluster.save(update_fields=["rocketmq_name"])
        brokers = [
            BrokerObserved(name=master.broker_name, broker_id=int(broker_id), address=address)
            for broker_id, address in master.broker_addrs.items()
        ]
        synchroniser.apply_brokers(cluster, brokers, now)
        note_resumed(cluster, now, true_until=self._true_until if cluster.state == ClusterState.REACHABLE else None)
        self._has_answered = False
        return cluster, cluster.brokers.get(name=master.broker_name, broker_id=int(MASTER_ID))

    def _leave_to_polling(self, reason: str) -> None:
        Cluster.objects.filter(pk=self._cluster_id).update(kind=ClusterKind.APACHE)
        raise NotFollowable(f"the cluster behind {self._namesrv} is polled: {reason}")

    def _write(self, cluster: Cluster, broker: Broker, header: WatchResponseHeader, body: WatchBody) -> int:
        """Returns how many rows were written for progress: the pace is kept by them; a snapshot's don't count."""
        now = timezone.now()

        def note_position() -> None:
            broker.boot, broker.revision = header.boot, header.revision
            broker.version, broker.seen_at, broker.last_error = body.version, now, ""
            if body.scheduler is not None:
                _set_scheduler(broker, body.scheduler)
            broker.save()
            self._note_answer(cluster, now)

        if header.revision == broker.revision and header.boot == broker.boot:
            self._note_quiet(cluster, broker, body, now)
            return 0
        observation = observation_of_watch(body, boot=header.boot, is_snapshot=header.is_snapshot, now=now)
        row_count = synchroniser.apply(
            cluster,
            observation,
            is_watched=True,
            at_the_end=note_position,
            between_parts=self._database.raise_if_closing,
        )
        return 0 if header.is_snapshot else row_count

    def _note_quiet(self, cluster: Cluster, broker: Broker, body: WatchBody, now: datetime) -> None:
        """Writes, of an answer without news, the scheduler's state if that has changed."""
        if body.scheduler is not None and _set_scheduler(broker, body.scheduler):
            broker.save()
        self._note_answer(cluster, now)

    def _note_answer(self, cluster: Cluster, now: datetime) -> None:
        """Writes that the cluster is reachable, once per connection: after that the renewed lease says it."""
        if not self._has_answered:
            note_reachable(cluster, ClusterKind.OURS, now)
            self._has_answered = True

    def _note_unreachable(self, reason: str) -> None:
        cluster = Cluster.objects.get(pk=self._cluster_id)
        true_until = self._true_until if cluster.state == ClusterState.REACHABLE else None
        note_unreachable(cluster, reason, timezone.now(), true_until=true_until)

    def _tick(self, cluster: Cluster) -> int:
        return publish(ticked, Ticked(cluster, timezone.now(), is_watched=True))


def _followable_clusters() -> set[tuple[int, str]]:
    return set(Cluster.objects.exclude(kind=ClusterKind.APACHE).values_list("pk", "namesrv"))


def _set_scheduler(broker: Broker, state: SchedulerState) -> bool:
    """Sets what the broker says of its scheduler; returns whether any of it is new."""
    values = {
        "scheduler_driver": state.driver,
        "scheduler_since": moment_or_none(state.since_ms),
        "scheduler_late_ms": state.late_ms if state.late_ms >= 0 else None,
        "scheduler_waiting_count": state.waiting_count,
        "scheduler_kinds": [msgspec.structs.asdict(kind) for kind in state.kinds],
    }
    is_new = any(getattr(broker, name) != value for name, value in values.items())
    for name, value in values.items():
        setattr(broker, name, value)
    return is_new
