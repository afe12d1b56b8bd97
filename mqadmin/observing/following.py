"""Following one of our own clusters: what its broker says to a watch goes into the rows, within a second.

One long call under a lease. It ends when the lease is lost or a stop is asked for, and otherwise survives everything:
a broker that is gone is asked again with a growing pause, and the cluster says why it is unreachable.

The position (`boot`, `revision`) is written in the last transaction of the rows that it stands for, so whoever takes
over goes on exactly there; the broker answers with a snapshot when it does not remember that far.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from mqadmin.clusters.models import Broker, Cluster, ClusterKind
from mqadmin.lag import measuring
from mqadmin.observing import leases, synchroniser
from mqadmin.observing.gateway import Gateway, GatewayError, NotWatchable
from mqadmin.observing.observation import BrokerObserved
from mqadmin.observing.reachability import note_reachable, note_unreachable
from mqadmin.observing.watch_observation import moment_or_none, observation_of_watch
from remoting.wire.bodies.route import MASTER_ID
from remoting.wire.bodies.watch import SchedulerState, WatchBody
from remoting.wire.headers.watch import WatchResponseHeader

logger = logging.getLogger(__name__)

# How long the broker may hold an answer back: a stop is noticed at least this often.
WATCH_WAIT_MS = 1000
# Between two answers, so that a storm of changes costs a bounded number of transactions; what changes meanwhile comes
# together. Progress alone the broker tells only twice a second.
CYCLE_S_MIN = 0.1
TICK_S = 5.0
BACKOFF_S = (0.5, 1.0, 2.0, 5.0)


class NotFollowable(Exception):
    """The cluster is polled instead: it is Apache's, or has several masters."""


@dataclass(slots=True)
class Follower:
    """`clock` counts seconds, `sleep` waits them; both stand still in tests."""

    cluster_id: int
    holder: uuid.UUID
    worker: str
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _renewed_s: float = float("-inf")
    _ticked_s: float = float("-inf")

    def run(self) -> None:
        """Returns when it has to stop. Raises NotFollowable, after the cluster's row says so."""
        failures = 0
        try:
            while self._may_go_on():
                try:
                    self._follow_one_connection()
                except GatewayError as error:
                    note_unreachable(self._cluster(), str(error), timezone.now())
                    self._pause(BACKOFF_S[min(failures, len(BACKOFF_S) - 1)])
                    failures += 1
                else:
                    failures = 0
        finally:
            leases.release(self.cluster_id, self.holder, timezone.now())

    def _follow_one_connection(self) -> None:
        """Until a stop is asked for, or the cluster got another address.

        Raises GatewayError when the broker does not answer (any more).
        """
        cluster = self._cluster()
        namesrv = cluster.namesrv
        with Gateway(namesrv) as gateway:
            broker = self._the_broker(gateway, cluster)
            measuring.note_gap(cluster, timezone.now())
            while self._may_go_on() and cluster.namesrv == namesrv:
                started_s = self.clock()
                header, body = self._ask(gateway, cluster, broker)
                self._write(cluster, broker, header, body)
                self._tick(cluster)
                self._pause(max(0.0, CYCLE_S_MIN - (self.clock() - started_s)))

    def _the_broker(self, gateway: Gateway, cluster: Cluster) -> Broker:
        """The row of the one master."""
        masters = [broker for broker in gateway.brokers() if broker.master_addr]
        if not masters:
            raise GatewayError(f"the name servers {cluster.namesrv} know no broker: start one")
        if len(masters) > 1:
            self._leave_to_polling(cluster, f"{len(masters)} masters")
        master = masters[0]
        cluster.rocketmq_name = master.cluster
        cluster.save(update_fields=["rocketmq_name"])
        brokers = [
            BrokerObserved(name=master.broker_name, broker_id=int(broker_id), address=address)
            for broker_id, address in master.broker_addrs.items()
        ]
        synchroniser.apply_brokers(cluster, brokers, timezone.now())
        return cluster.brokers.get(name=master.broker_name, broker_id=int(MASTER_ID))

    def _ask(self, gateway: Gateway, cluster: Cluster, broker: Broker) -> tuple[WatchResponseHeader, WatchBody]:
        try:
            return gateway.watch(broker.address, boot=broker.boot, since=broker.revision, wait_ms=WATCH_WAIT_MS)
        except NotWatchable:
            self._leave_to_polling(cluster, "its broker is Apache's")
            raise

    def _leave_to_polling(self, cluster: Cluster, reason: str) -> None:
        Cluster.objects.filter(pk=cluster.pk).update(kind=ClusterKind.APACHE)
        raise NotFollowable(f"{cluster.name} is polled: {reason}")

    def _write(self, cluster: Cluster, broker: Broker, header: WatchResponseHeader, body: WatchBody) -> None:
        now = timezone.now()
        is_news = header.revision != broker.revision or header.boot != broker.boot

        def note_position() -> None:
            broker.boot, broker.revision = header.boot, header.revision
            broker.version, broker.seen_at, broker.last_error = body.version, now, ""
            if body.scheduler is not None:
                _set_scheduler(broker, body.scheduler)
            broker.save()
            note_reachable(cluster, ClusterKind.OURS, now)

        if not is_news:
            with transaction.atomic():
                note_position()
            return
        seen = observation_of_watch(body, boot=header.boot, is_snapshot=header.is_snapshot, now=now)
        synchroniser.apply(cluster, seen, is_watched=True, at_the_end=note_position, between_parts=self._renew_if_due)

    def _tick(self, cluster: Cluster) -> None:
        if self.clock() - self._ticked_s < TICK_S:
            return
        self._ticked_s = self.clock()
        cluster.refresh_from_db()
        synchroniser.tick(cluster, timezone.now(), is_watched=True, between_parts=self._renew_if_due)

    def _may_go_on(self) -> bool:
        """Renews the lease when it is time to; False when it is lost or a stop was asked for."""
        self._renew_if_due()
        return not leases.is_stop_asked(self.cluster_id, self.holder)

    def _renew_if_due(self) -> None:
        """Does nothing for a lease that was lost: `_may_go_on` finds that out."""
        if self.clock() - self._renewed_s >= leases.HEARTBEAT_S:
            self._renewed_s = self.clock()
            leases.renew(self.cluster_id, self.holder, self.worker, timezone.now())

    def _pause(self, seconds: float) -> None:
        """Sleeps in steps short enough that a stop is noticed and the lease renewed."""
        ends_s = self.clock() + seconds
        while (left_s := ends_s - self.clock()) > 0 and self._may_go_on():
            self.sleep(min(left_s, WATCH_WAIT_MS / 1000))

    def _cluster(self) -> Cluster:
        return Cluster.objects.get(pk=self.cluster_id)


def _set_scheduler(broker: Broker, state: SchedulerState) -> None:
    broker.scheduler_driver = state.driver
    broker.scheduler_since = moment_or_none(state.since_ms)
    broker.scheduler_late_ms = state.late_ms if state.late_ms >= 0 else None
    broker.scheduler_waiting_count = state.waiting_count


def follow(cluster_id: int, holder: uuid.UUID, worker: str) -> None:
    """One follower's life; a cluster that cannot be followed is left to polling."""
    try:
        Follower(cluster_id, holder, worker).run()
    except NotFollowable as reason:
        logger.info("%s", reason)
    except Cluster.DoesNotExist:
        logger.info("cluster %d was removed; nothing to follow any more", cluster_id)
