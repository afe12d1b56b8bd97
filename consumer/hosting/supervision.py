"""What must be done so that as many instances run as are wanted: pure decisions over what the rows say.

    lost       a lease whose instance is certainly gone, silent for too long, or never began
    surplus    leases beyond the wanted number: of the worker that hosts most of the group, the newest
    missing    leases to make, each on a worker; never more than it has free slots, since a task that no process takes
               waits unseen

Slots that do not suffice for all go to the groups that have the smallest part of what they want, in turn. An instance
goes to the worker that hosts the fewest of its group, so that the death of one worker leaves members who take its
queues at once. A group that came to lie on one worker all the same (the only one there was) is spread once another has
room: first one instance more than wanted starts there, and when it runs an old one is surplus, so consuming never
pauses. One group at a time, and only when there is nothing else to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from consumer.models import LeaseState, Word

# Not shorter than 15 s: see models.py.
SILENT_AFTER = timedelta(seconds=30)
# A task that no worker took by then is void, and its lease ends a little later.
OFFER_EXPIRES_S = 20
UNTAKEN_AFTER = timedelta(seconds=OFFER_EXPIRES_S + 5)
# How long failures count, and the longest pause that they cause.
FAILURES_COUNT_FOR = timedelta(minutes=5)
FAILURE_PAUSE_S_MAX = 60


@dataclass(frozen=True, slots=True)
class LeaseFacts:
    """`worker`: the node that runs it or was offered it. `is_gone`: its process is certainly no more."""

    id: UUID
    group: str
    worker: str
    state: str
    word: str
    created_at: datetime
    heartbeat_at: datetime | None
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class Situation:
    """`wanted`: group → number, 0 for a group that no code declares. `leases`: all that are open.

    `slots`: node → how many instances that worker holds; of workers that live and are not about to stop.
    `failures`: group → when its instances ended by an error of their own lately.
    """

    now: datetime
    wanted: Mapping[str, int]
    leases: Sequence[LeaseFacts]
    slots: Mapping[str, int]
    failures: Mapping[str, Sequence[datetime]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """A lease to make: of this group, on this worker."""

    group: str
    worker: str


@dataclass(frozen=True, slots=True)
class Plan:
    """`lost` with the reason; `missing`: one entry per lease to make."""

    lost: tuple[tuple[UUID, str], ...] = ()
    surplus: tuple[UUID, ...] = ()
    missing: tuple[Place, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.lost or self.surplus or self.missing)


def decide(situation: Situation) -> Plan:
    lost = [(lease.id, reason) for lease in situation.leases if (reason := _reason_lost(lease, situation))]
    gone = {lease_id for lease_id, _ in lost}
    held = [lease for lease in situation.leases if lease.id not in gone]
    staying = [lease for lease in held if lease.word == Word.RUN and lease.state != LeaseState.STOPPING]
    surplus = [
        lease.id for group, number in situation.wanted.items() for lease in _surplus(_of(group, staying), number)
    ]
    staying = [lease for lease in staying if lease.id not in set(surplus)]
    # One that stops has its slot until it has ended.
    room = _Room(situation.slots, held, staying)
    plan = Plan(tuple(lost), tuple(surplus), tuple(_missing(situation, staying, room)))
    return Plan(missing=_spread(situation, staying, room)) if plan.is_empty else plan


class _Room:
    """Which worker takes the next instance of a group; `take` fills one of its slots."""

    def __init__(self, slots: Mapping[str, int], held: Iterable[LeaseFacts], staying: Iterable[LeaseFacts]) -> None:
        self._free = Counter(slots)
        self._free.subtract(lease.worker for lease in held if lease.worker in slots)
        self._hosted = Counter((lease.group, lease.worker) for lease in staying)

    def best(self, group: str) -> str | None:
        """That hosts the fewest of the group, then that has the most free slots."""
        nodes = [node for node, free in self._free.items() if free > 0]
        return min(nodes, key=lambda node: (self._hosted[group, node], -self._free[node], node), default=None)

    def take(self, place: Place) -> None:
        self._free[place.worker] -= 1
        self._hosted[place.group, place.worker] += 1


def _reason_lost(lease: LeaseFacts, situation: Situation) -> str | None:
    if lease.state == LeaseState.WANTED:
        if lease.worker not in situation.slots:
            return "its worker went before it began"
        return "no worker took it" if situation.now - lease.created_at > UNTAKEN_AFTER else None
    if lease.is_gone:
        return "its process is gone"
    silent_since = lease.heartbeat_at or lease.created_at
    return "silent for too long" if situation.now - silent_since > SILENT_AFTER else None


def _of(group: str, leases: Iterable[LeaseFacts]) -> list[LeaseFacts]:
    return [lease for lease in leases if lease.group == group]


def _surplus(its: list[LeaseFacts], wanted: int) -> list[LeaseFacts]:
    """Of one group. One that runs is stopped only as long as enough others run already."""
    running = sum(lease.state == LeaseState.RUNNING for lease in its)
    surplus = []
    for _ in range(len(its) - wanted):
        hosted = Counter(lease.worker for lease in its)
        worst = max(its, key=lambda lease: (hosted[lease.worker], lease.created_at))
        its = [lease for lease in its if lease is not worst]
        if worst.state == LeaseState.RUNNING:
            if running <= wanted:
                continue
            running -= 1
        surplus.append(worst)
    return surplus


def _startable(situation: Situation) -> dict[str, int]:
    """The wanted numbers of the groups that may start an instance now."""
    return {
        group: wanted
        for group, wanted in situation.wanted.items()
        if wanted > 0 and not _must_wait(situation.failures.get(group, ()), situation.now)
    }


def _missing(situation: Situation, staying: Iterable[LeaseFacts], room: _Room) -> list[Place]:
    candidates = _startable(situation)
    have = Counter(lease.group for lease in staying)
    missing: list[Place] = []
    while lacking := [group for group, wanted in candidates.items() if have[group] < wanted]:
        group = min(lacking, key=lambda name: (have[name] / candidates[name], name))
        worker = room.best(group)
        if worker is None:
            break
        missing.append(Place(group, worker))
        room.take(missing[-1])
        have[group] += 1
    return missing


def _spread(situation: Situation, staying: Iterable[LeaseFacts], room: _Room) -> tuple[Place, ...]:
    """One more instance for a group whose instances, two at least and all running, lie on one worker."""
    for group in sorted(_startable(situation)):
        its = _of(group, staying)
        nodes = {lease.worker for lease in its}
        is_settled = len(its) > 1 and all(lease.state == LeaseState.RUNNING for lease in its)
        worker = room.best(group)
        if is_settled and len(nodes) == 1 and worker is not None and worker not in nodes:
            return (Place(group, worker),)
    return ()


def _must_wait(failures: Sequence[datetime], now: datetime) -> bool:
    """After n failures lately 2^n seconds pass before the next instance starts."""
    recent = [at for at in failures if now - at < FAILURES_COUNT_FOR]
    if not recent:
        return False
    pause_s = min(FAILURE_PAUSE_S_MAX, 2 ** min(len(recent), 10))
    return now - max(recent) < timedelta(seconds=pause_s)
