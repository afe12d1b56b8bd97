"""What must be done so that as many instances run as are wanted: pure decisions over what the rows say.

    lost       a lease whose instance is certainly gone, silent for too long, or never began
    surplus    leases beyond the wanted number: the newest, for they own the least
    missing    leases to make; never more than workers have free slots, since a task that no process takes waits unseen

Slots that do not suffice for all go to the groups that have the smallest part of what they want, in turn.
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
    """`is_gone`: its process is certainly no more."""

    id: UUID
    group: str
    state: str
    word: str
    created_at: datetime
    heartbeat_at: datetime | None
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class Situation:
    """`wanted`: group → number, 0 for a group that no code declares. `leases`: all that are open.

    `failures`: group → when its instances ended by an error of their own lately.
    """

    now: datetime
    wanted: Mapping[str, int]
    leases: Sequence[LeaseFacts]
    slots: int
    failures: Mapping[str, Sequence[datetime]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """`lost` with the reason; `missing`: one entry per lease to make."""

    lost: tuple[tuple[UUID, str], ...] = ()
    surplus: tuple[UUID, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.lost or self.surplus or self.missing)


def decide(situation: Situation) -> Plan:
    lost = [(lease.id, reason) for lease in situation.leases if (reason := _reason_lost(lease, situation.now))]
    gone = {lease_id for lease_id, _ in lost}
    held = [lease for lease in situation.leases if lease.id not in gone]
    staying = [lease for lease in held if lease.word == Word.RUN and lease.state != LeaseState.STOPPING]
    surplus = [lease for group, wanted in situation.wanted.items() for lease in _surplus(group, wanted, staying)]
    leaving = {lease.id for lease in surplus}
    counts = Counter(lease.group for lease in staying if lease.id not in leaving)
    # One that stops has its slot until it has ended.
    free = situation.slots - len(held)
    missing = _missing(situation, counts, free)
    return Plan(tuple(lost), tuple(lease.id for lease in surplus), tuple(missing))


def _reason_lost(lease: LeaseFacts, now: datetime) -> str | None:
    if lease.state == LeaseState.WANTED:
        return "no worker took it" if now - lease.created_at > UNTAKEN_AFTER else None
    if lease.is_gone:
        return "its process is gone"
    silent_since = lease.heartbeat_at or lease.created_at
    return "silent for too long" if now - silent_since > SILENT_AFTER else None


def _surplus(group: str, wanted: int, staying: Iterable[LeaseFacts]) -> list[LeaseFacts]:
    its = sorted((lease for lease in staying if lease.group == group), key=lambda lease: lease.created_at)
    return its[wanted:]


def _missing(situation: Situation, counts: Counter[str], free: int) -> list[str]:
    candidates = {
        group: wanted
        for group, wanted in situation.wanted.items()
        if wanted > 0 and not _must_wait(situation.failures.get(group, ()), situation.now)
    }
    have = Counter(counts)
    missing: list[str] = []
    while len(missing) < free:
        lacking = [group for group, wanted in candidates.items() if have[group] < wanted]
        if not lacking:
            break
        group = min(lacking, key=lambda name: (have[name] / candidates[name], name))
        have[group] += 1
        missing.append(group)
    return missing


def _must_wait(failures: Sequence[datetime], now: datetime) -> bool:
    """After n failures lately 2^n seconds pass before the next instance starts."""
    recent = [at for at in failures if now - at < FAILURES_COUNT_FOR]
    if not recent:
        return False
    pause_s = min(FAILURE_PAUSE_S_MAX, 2 ** min(len(recent), 10))
    return now - max(recent) < timedelta(seconds=pause_s)
