"""What following one cluster writes: its brokers' answers, and which of them answer. Synchronous; called in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec
from django.utils import timezone

from mqadmin.clusters.models import Broker, Cluster, ClusterKind, ClusterState
from mqadmin.clusters.moments import moment_or_none
from mqadmin.observing import attributing, costs, synchroniser
from mqadmin.observing.gateway import Cost, GatewayError, KnownBrokers
from mqadmin.observing.observation import BrokerObserved
from mqadmin.observing.reachability import note_followed, note_resumed, note_unreachable
from mqadmin.observing.signals import Ticked, publish, ticked
from mqadmin.observing.watch_observation import observation_of_watch
from remoting.wire.bodies.route import MASTER_ID
from remoting.wire.bodies.watch import SchedulerState, WatchBody
from remoting.wire.headers.watch import WatchResponseHeader

_ANSWERING = (ClusterState.REACHABLE, ClusterState.PARTIAL)


class FollowedRows:
    """`true_until`: up to when an earlier follower kept the rows true. `raise_if_closing` ends a long write.

    Nothing is written of a cluster that has other name servers by now: Cluster.DoesNotExist is raised, or, where its
    brokers' rows went in the midst of an answer, DatabaseError.
    """

    def __init__(
        self, cluster_id: int, namesrv: str, true_until: datetime | None, raise_if_closing: Callable[[], None]
    ) -> None:
        self._cluster_id = cluster_id
        self._namesrv = namesrv
        self._inherited_until = true_until
        self._raise_if_closing = raise_if_closing
        self._cluster: Cluster | None = None
        self._masters: set[str] = set()
        # The masters when rows from before were attributed: those that are written since say whose word they are.
        self._attributed: set[str] = set()
        # Those that answered on the present connection, and when they did last; why the others do not.
        self._answering: set[str] = set()
        self._true_until: dict[str, datetime] = {}
        # Those that are not asked for a while, by the moment of their last answer.
        self._resting: dict[str, datetime] = {}
        self._away: dict[str, str] = {}
        self._silent: dict[str, str] = {}
        # Brokers that are not listed any more, whose rows go once the others have told what is theirs.
        self._gone: set[str] = set()

    def begin(self, known: KnownBrokers) -> list[Broker]:
        """Writes which brokers there are; returns the rows of the masters.

        Where a name server is silent, brokers that it may have listed stay. Raises Cluster.DoesNotExist, and
        GatewayError where there is nothing to follow.
        """
        cluster, now = self._load(), timezone.now()
        # What polling compares with says nothing of rows that a watch has changed.
        cluster.groups.exclude(committed_digest=0).update(committed_digest=0)
        rows = {row.name: row for row in cluster.brokers.filter(broker_id=int(MASTER_ID))}
        listed = [broker for broker in known.brokers if broker.master_addr]
        kept = [row for name, row in rows.items() if known.silent and name not in {one.broker_name for one in listed}]
        if not listed and not kept:
            raise GatewayError(f"the name servers {self._namesrv} know no broker: start one")
        for name, addresses in known.contested.items():
            raise GatewayError(
                f"{len(addresses)} brokers are named {name} ({', '.join(addresses)}): give each a name of its own"
            )
        if listed and cluster.rocketmq_name != listed[0].cluster:
            cluster.rocketmq_name = listed[0].cluster
            cluster.save(update_fields=["rocketmq_name"])
        if cluster.cycle_request_count is not None:
            cluster.cycle_request_count = cluster.cycle_seconds = None
            cluster.save(update_fields=["cycle_request_count", "cycle_seconds"])
        observed = [
            BrokerObserved(
                name=broker.broker_name,
                broker_id=int(broker_id),
                address=address,
                error=self._away.get(broker.broker_name, "") if broker_id == MASTER_ID else "",
            )
            for broker in listed
            for broker_id, address in broker.broker_addrs.items()
        ]
        observed += [
            BrokerObserved(
                name=row.name, broker_id=row.broker_id, address=row.address, error=self._away.get(row.name, "")
            )
            for row in kept
        ]
        was_silent = self._silent
        self._masters, self._silent = {one.name for one in observed if one.broker_id == int(MASTER_ID)}, known.silent
        if len(self._masters) > 1 and self._masters != self._attributed:
            attributing.attribute(cluster, self._masters | rows.keys())
            self._attributed = self._masters
        # Of some the row of the broker is gone by now: the cluster got other name servers, or an earlier follower ended
        # before the others had told what is theirs.
        named = rows.keys() if self._answering else rows.keys() | attributing.brokers_of(cluster)
        self._gone |= named - self._masters
        synchroniser.apply_brokers(cluster, observed, now, is_watched=True)
        for known_names in (self._away, self._true_until, self._resting):
            for name in known_names.keys() - self._masters:
                del known_names[name]
        self._answering &= self._masters
        if not self._answering:
            note_resumed(cluster, now, true_until=self._last_true())
        if self._silent != was_silent:
            self._note_state(now)
        return list(cluster.brokers.filter(name__in=self._masters, broker_id=int(MASTER_ID)).order_by("name"))

    def write(self, broker: Broker, header: WatchResponseHeader, body: WatchBody) -> int:
        """Returns how many rows were written for progress: the pace is kept by them; a snapshot's don't count."""
        cluster, now = self._loaded(), timezone.now()

        def note_position() -> None:
            broker.boot, broker.revision, broker.has_told_topics = header.boot, header.revision, True
            broker.version, broker.seen_at, broker.last_error = body.version, now, ""
            if body.scheduler is not None:
                _set_scheduler(broker, body.scheduler)
            broker.save(force_update=True)
            self._note_answer(broker.name, now)

        if header.revision == broker.revision and header.boot == broker.boot:
            self._note_quiet(broker, body, now)
            return 0
        observation = observation_of_watch(body, boot=header.boot, is_snapshot=header.is_snapshot, now=now)
        row_count = synchroniser.apply(
            cluster, observation, is_watched=True, at_the_end=note_position, between_parts=self._raise_if_closing
        )
        return 0 if header.is_snapshot else row_count

    def rest(self, name: str) -> None:
        """Writes that a broker is not asked again soon: its rows are as old as its last answer until the next."""
        self._resting[name] = self._true_until[name]
        self._write_rest()

    def note_away(self, name: str, reason: str) -> None:
        """Writes that a broker does not answer, and up to when its rows are true."""
        self._answering.discard(name)
        self._end_rest(name)
        self._away[name] = reason
        self._loaded().brokers.filter(name=name, broker_id=int(MASTER_ID)).update(last_error=reason)
        self._note_state(timezone.now())

    def note_unreachable(self, reason: str) -> None:
        """Writes that nothing of the cluster answers. Raises Cluster.DoesNotExist."""
        cluster = self._load()
        self._answering.clear()
        self._resting.clear()
        self._write_rest()
        note_unreachable(cluster, reason, timezone.now(), true_until=self._last_true())

    def leave_to_polling(self, kind: ClusterKind) -> None:
        """Writes that the cluster is polled."""
        Cluster.objects.filter(pk=self._cluster_id, namesrv=self._namesrv).update(
            kind=kind, brokers_away={}, resting_since=None
        )

    def tick(self) -> int:
        """Publishes that time passed, where any broker answers; returns how many rows that wrote.

        For a cluster that rests no time passes: a queue that moves meanwhile would be judged as one that stands.
        """
        if not self._answering:
            return 0
        cluster = self._loaded()
        return publish(ticked, Ticked(cluster, cluster.resting_since or timezone.now(), is_watched=True))

    def note_costs(self, taken: Mapping[str, Cost]) -> None:
        """Writes what following has cost the servers since the last call."""
        costs.write(self._loaded(), taken, timezone.now())

    def _load(self) -> Cluster:
        """Returns the cluster's row as it is now. What an earlier follower vouched for counts only if it did."""
        cluster = Cluster.objects.get(pk=self._cluster_id, namesrv=self._namesrv)
        if self._cluster is None and cluster.state not in _ANSWERING:
            self._inherited_until = None
        self._cluster = cluster
        return cluster

    def _loaded(self) -> Cluster:
        assert self._cluster is not None, "begin comes first"
        return self._cluster

    def _note_quiet(self, broker: Broker, body: WatchBody, now: datetime) -> None:
        """Writes, of an answer without news, the scheduler's state if that has changed."""
        is_new = body.scheduler is not None and _set_scheduler(broker, body.scheduler)
        if broker.last_error:
            broker.last_error, broker.seen_at, is_new = "", now, True
        if is_new:
            broker.save(force_update=True)
        self._note_answer(broker.name, now)

    def _note_answer(self, name: str, now: datetime) -> None:
        """Writes that the broker answers, once per connection: after that the renewed lease says it."""
        self._true_until[name] = now
        self._end_rest(name)
        if name not in self._answering:
            self._answering.add(name)
            self._away.pop(name, None)
            self._note_state(now)

    def _end_rest(self, name: str) -> None:
        self._resting.pop(name, None)
        self._write_rest()

    def _write_rest(self) -> None:
        """Writes up to when all rows are true, where that is otherwise than before."""
        cluster, since = self._loaded(), min(self._resting.values(), default=None)
        if cluster.resting_since != since:
            cluster.resting_since = since
            cluster.save(update_fields=["resting_since"])

    def _note_state(self, now: datetime) -> None:
        """Writes the cluster's state, once each of its brokers has answered or not."""
        cluster = self._loaded()
        if self._masters - self._answering - self._away.keys():
            return
        away = {name: self._away_since(cluster, name) for name in self._away}
        reasons = "; ".join([*self._away.values(), *self._silent.values()])
        if not reasons:
            self._forget_gone(cluster, now)
        if self._answering:
            note_followed(cluster, away, now, partly=reasons)
        else:
            cluster.brokers_away = away
            note_unreachable(cluster, reasons, now, true_until=self._last_true())

    def _forget_gone(self, cluster: Cluster, now: datetime) -> None:
        for name in sorted(self._gone - self._masters):
            synchroniser.forget_broker(cluster, name, now)
        self._gone.clear()

    def _away_since(self, cluster: Cluster, name: str) -> int | None:
        """Returns up to when the broker's rows are true, as `Cluster.brokers_away` has it."""
        if name in cluster.brokers_away:
            known: int | None = cluster.brokers_away[name]
            return known
        moment = self._true_until.get(name, self._inherited_until)
        return int(moment.timestamp() * 1000) if moment is not None else None

    def _last_true(self) -> datetime | None:
        return max(self._true_until.values(), default=self._inherited_until)


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
