"""Decides which leases to end, to stop and to make, so that the wanted number of instances runs. Pure.

    lost       leases whose instance is certainly gone, has not sent a heartbeat for too long, or never began
    surplus    leases beyond the wanted number: of the worker that hosts most of the group, the newest; and those of a
               worker that is drained or stops, as soon as enough others of their group run or no other worker has room
    missing    leases to make, each on a worker; never more than it has free slots, since Celery would keep a task that
               no process can take

Where slots are short, groups get them in the order of the smallest share of their wanted number. An instance is placed
on the worker that hosts the fewest of its group, so that members remain when a worker dies, and take its queues at
once. A group whose instances are all on one worker (the only one at the time) is spread when another has room: first
one instance more than wanted starts there, and when it runs an old one is surplus, so that consuming never pauses. One
group at a time, and only when there is nothing else to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from consumer.models import DesiredState, LeaseState

# Not shorter than 15 s: see models.py.
SILENT_AFTER = timedelta(seconds=30)
# Celery discards a task that no worker has taken by then; its lease ends a little later.
OFFER_EXPIRES_S = 20
UNTAKEN_AFTER = timedelta(seconds=OFFER_EXPIRES_S + 5)
# How long failures count, and the longest pause before a new start that they cause.
FAILURES_COUNT_FOR = timedelta(minutes=5)
FAILURE_PAUSE_S_MAX = 60
# Why supervision ends an instance that did not do so itself.
PROCESS_GONE = "its process is gone"
SILENT = "silent for too long"


@dataclass(frozen=True, slots=True)
class LeaseSnapshot:
    """`group`: its key (`consumer/group_key.py`), as everywhere in this module.

    `worker`: the node that runs it or was offered it. `is_gone`: its process is certainly no more.
    """

    id: UUID
    group: str
    worker: str
    state: str
    desired_state: str
    created_at: datetime
    heartbeat_at: datetime | None
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class HostingSnapshot:
    """`wanted`: group → number, 0 for a group that no code declares or that is stopped. `leases`: all that are open.

    `slots`: node → how many instances that worker holds; of workers that live and are not about to stop. `leaving`:
    workers that live and whose instances are to run elsewhere, because they are drained or stop.
    `failures`: group → when its instances ended by an error of their own lately.
    """

    now: datetime
    wanted: Mapping[str, int]
    leases: Sequence[LeaseSnapshot]
    slots: Mapping[str, int]
    failures: Mapping[str, Sequence[datetime]] = field(default_factory=dict)
    leaving: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """A lease to make, of `group` on `worker`."""

    group: str
    worker: str


@dataclass(frozen=True, slots=True)
class SupervisionPlan:
    """`lost` with the reason; `missing`: one entry per lease to make."""

    lost: tuple[tuple[UUID, str], ...] = ()
    surplus: tuple[UUID, ...] = ()
    missing: tuple[Placement, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.lost or self.surplus or self.missing)


def decide(snapshot: HostingSnapshot) -> SupervisionPlan:
    lost = [(lease.id, reason) for lease in snapshot.leases if (reason := _reason_lost(lease, snapshot))]
    gone = {lease_id for lease_id, _ in lost}
    held = [lease for lease in snapshot.leases if lease.id not in gone]
    staying = [
        lease for lease in held if lease.desired_state == DesiredState.RUN and lease.state != LeaseState.STOPPING
    ]
    leaving = [lease for lease in staying if lease.worker in snapshot.leaving]
    staying = [lease for lease in staying if lease.worker not in snapshot.leaving]
    surplus = [lease.id for group, number in snapshot.wanted.items() for lease in _surplus(_of(group, staying), number)]
    staying = [lease for lease in staying if lease.id not in set(surplus)]
    # One that stops has its slot until it has ended.
    slots = {node: number for node, number in snapshot.slots.items() if node not in snapshot.leaving}
    free_slots = _FreeSlots(slots, held, staying)
    missing = _missing(snapshot, staying, free_slots)
    surplus += [
        lease.id for lease in leaving if not _is_waited_for(lease.group, snapshot, staying, missing, free_slots)
    ]
    plan = SupervisionPlan(tuple(lost), tuple(surplus), tuple(missing))
    return SupervisionPlan(missing=_spread(snapshot, staying, free_slots)) if plan.is_empty else plan


def _is_waited_for(
    group: str,
    snapshot: HostingSnapshot,
    staying: Iterable[LeaseSnapshot],
    missing: Iterable[Placement],
    free_slots: _FreeSlots,
) -> bool:
    """Tells whether instances of the group that are to run elsewhere go on until others, which are coming, run.

    Others that failed come again after their pause, while there is room for them.
    """
    own = _of(group, staying)
    running = sum(lease.state == LeaseState.RUNNING for lease in own)
    coming = len(own) - running + sum(place.group == group for place in missing)
    is_pausing = group not in _startable(snapshot) and free_slots.best_worker(group) is not None
    return (coming > 0 or is_pausing) and running < snapshot.wanted.get(group, 0)


class _FreeSlots:
    """The free slots of all workers; `take` uses one."""

    def __init__(
        self, slots: Mapping[str, int], held: Iterable[LeaseSnapshot], staying: Iterable[LeaseSnapshot]
    ) -> None:
        self._free = Counter(slots)
        self._free.subtract(lease.worker for lease in held if lease.worker in slots)
        self._hosted = Counter((lease.group, lease.worker) for lease in staying)

    def best_worker(self, group: str) -> str | None:
        """Returns the worker with a free slot that hosts the fewest of the group; of these, the one with most slots."""
        nodes = [node for node, free in self._free.items() if free > 0]
        return min(nodes, key=lambda node: (self._hosted[group, node], -self._free[node], node), default=None)

    def take(self, place: Placement) -> None:
        self._free[place.worker] -= 1
        self._hosted[place.group, place.worker] += 1


def _reason_lost(lease: LeaseSnapshot, snapshot: HostingSnapshot) -> str | None:
    if lease.state == LeaseState.PENDING:
        if lease.worker not in snapshot.slots:
            return "its worker stopped before it began"
        return "no worker took it" if snapshot.now - lease.created_at > UNTAKEN_AFTER else None
    if lease.is_gone:
        return PROCESS_GONE
    silent_since = lease.heartbeat_at or lease.created_at
    return SILENT if snapshot.now - silent_since > SILENT_AFTER else None


def _of(group: str, leases: Iterable[LeaseSnapshot]) -> list[LeaseSnapshot]:
    return [lease for lease in leases if lease.group == group]


def _surplus(own: list[LeaseSnapshot], wanted: int) -> list[LeaseSnapshot]:
    """Chooses among the leases of one group. One that runs is surplus only while enough others run."""
    running = sum(lease.state == LeaseState.RUNNING for lease in own)
    surplus = []
    for _ in range(len(own) - wanted):
        hosted = Counter(lease.worker for lease in own)
        worst = max(own, key=lambda lease: (hosted[lease.worker], lease.created_at))
        own = [lease for lease in own if lease is not worst]
        if worst.state == LeaseState.RUNNING:
            if running <= wanted:
                continue
            running -= 1
        surplus.append(worst)
    return surplus


def _startable(snapshot: HostingSnapshot) -> dict[str, int]:
    """Returns the wanted numbers of the groups that may start an instance now."""
    return {
        group: wanted
        for group, wanted in snapshot.wanted.items()
        if wanted > 0 and pause_ends_at(snapshot.failures.get(group, ()), snapshot.now) is None
    }


def _missing(snapshot: HostingSnapshot, staying: Iterable[LeaseSnapshot], free_slots: _FreeSlots) -> list[Placement]:
    candidates = _startable(snapshot)
    have = Counter(lease.group for lease in staying)
    missing: list[Placement] = []
    while lacking := [group for group, wanted in candidates.items() if have[group] < wanted]:
        group = min(lacking, key=lambda name: (have[name] / candidates[name], name))
        worker = free_slots.best_worker(group)
        if worker is None:
            break
        missing.append(Placement(group, worker))
        free_slots.take(missing[-1])
        have[group] += 1
    return missing


def _spread(
    snapshot: HostingSnapshot, staying: Iterable[LeaseSnapshot], free_slots: _FreeSlots
) -> tuple[Placement, ...]:
    """Places one more instance of a group whose instances, two at least and all running, are on one worker."""
    for group in sorted(_startable(snapshot)):
        own = _of(group, staying)
        nodes = {lease.worker for lease in own}
        is_settled = len(own) > 1 and all(lease.state == LeaseState.RUNNING for lease in own)
        worker = free_slots.best_worker(group)
        if is_settled and len(nodes) == 1 and worker is not None and worker not in nodes:
            return (Placement(group, worker),)
    return ()


def pause_ends_at(failures: Sequence[datetime], now: datetime) -> datetime | None:
    """Returns when an instance may start again: 2^n seconds after the last of n recent failures; None: it may now."""
    recent = [at for at in failures if now - at < FAILURES_COUNT_FOR]
    if not recent:
        return None
    ends_at = max(recent) + timedelta(seconds=min(FAILURE_PAUSE_S_MAX, 2 ** min(len(recent), 10)))
    return ends_at if now < ends_at else None
