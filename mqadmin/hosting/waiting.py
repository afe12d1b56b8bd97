"""Why fewer instances of a hosted group run than are wanted. Pure; `sentences.py` has the words.

Supervision (`consumer/hosting/supervision.py`) decides what is placed where; this reads off the same rows what it
waits for. Each reason has the number of instances that it holds for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from consumer.hosting.supervision import SILENT_AFTER, UNTAKEN_AFTER, pause_ends_at
from consumer.models import LeaseState
from mqadmin.hosting.workers import Worker, WorkerState

# An instance sends a heartbeat every 2 s; SQLite's one writer can hold one up for seconds.
QUIET_AFTER = timedelta(seconds=10)
# A worker with a free process takes an offer within a second.
OFFER_TAKEN_WITHIN = timedelta(seconds=5)
# Of the groups that have the slots; the rest is a number.
GROUPS_NAMED_MAX = 5


class Why(StrEnum):
    """What an instance waits for."""

    STOPPED = "stopped"
    STARTING = "starting"
    SILENT = "silent"
    UNTAKEN = "untaken"
    NO_WORKER = "no_worker"
    LEAVING = "leaving"
    UNDECLARED = "undeclared"
    FAILED = "failed"
    SLOTS_TAKEN = "slots_taken"
    UNPLACED = "unplaced"


@dataclass(frozen=True, slots=True)
class Reason:
    """`count`: instances that wait for it. `numbers`: by `why`, as docs/REST.md lists them."""

    why: Why
    count: int
    numbers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OwnLease:
    """A lease of the group that is open and shall go on. `heard_at`: its last heartbeat, or when it was made."""

    state: str
    heard_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """`cluster`: the console's name of the group's. `is_declared`: None where no worker has said what it declares.

    `failures`: when instances of the group ended by an error of their own lately.
    """

    now: datetime
    cluster: str
    wanted: int
    is_stopped: bool
    leases: Sequence[OwnLease]
    workers: Sequence[Worker]
    failures: Sequence[datetime] = ()
    is_declared: bool | None = None


def reasons(situation: Situation) -> tuple[Reason, ...]:
    """Returns why instances wait; empty where as many run as are wanted."""
    if situation.is_stopped and situation.wanted:
        return (Reason(Why.STOPPED, situation.wanted),)
    now = situation.now
    missing = missing_count(situation.wanted, situation.leases, now)
    if not missing:
        return ()
    alive = [lease for lease in situation.leases if lease.state != LeaseState.PENDING]
    silent = [lease for lease in alive if _is_silent(lease, now)]
    heard = [lease for lease in alive if not _is_silent(lease, now)]
    offered = [lease for lease in situation.leases if lease.state == LeaseState.PENDING]
    untaken = [lease for lease in offered if now - lease.heard_at > OFFER_TAKEN_WITHIN]
    starting = sum(lease.state == LeaseState.STARTING for lease in heard) + len(offered) - len(untaken)
    found = []
    if starting:
        found.append(Reason(Why.STARTING, starting))
    if silent:
        found.append(Reason(Why.SILENT, len(silent), _for_s(silent, now, SILENT_AFTER)))
    if untaken:
        found.append(Reason(Why.UNTAKEN, len(untaken), _for_s(untaken, now, UNTAKEN_AFTER)))
    unplaced = missing - starting - len(silent) - len(untaken)
    if unplaced > 0:
        found.append(_unplaced(situation, unplaced))
    return tuple(found)


def missing_count(wanted: int, leases: Sequence[OwnLease], now: datetime) -> int:
    """Returns how many instances fewer run, and say so, than are wanted."""
    running = sum(lease.state == LeaseState.RUNNING and not _is_silent(lease, now) for lease in leases)
    return max(0, wanted - running)


def _is_silent(lease: OwnLease, now: datetime) -> bool:
    return now - lease.heard_at > QUIET_AFTER


def _for_s(leases: Sequence[OwnLease], now: datetime, limit: timedelta) -> dict[str, Any]:
    longest = max(now - lease.heard_at for lease in leases)
    return {"seconds": int(longest.total_seconds()), "limit_s": int(limit.total_seconds())}


def _unplaced(situation: Situation, count: int) -> Reason:
    states = Counter(worker.state for worker in situation.workers)
    taking = [worker for worker in situation.workers if worker.takes_instances]
    leaving = states[WorkerState.DRAINING] + states[WorkerState.STOPPING]
    if not taking and not leaving:
        return Reason(Why.NO_WORKER, count, {"silent_workers": states[WorkerState.SILENT]})
    if not taking:
        return Reason(Why.LEAVING, count, {"leaving_workers": leaving})
    if situation.is_declared is False:
        return Reason(Why.UNDECLARED, count)
    until = pause_ends_at(situation.failures, situation.now)
    if until is not None:
        seconds = max(1, round((until - situation.now).total_seconds()))
        return Reason(Why.FAILED, count, {"failures": len(situation.failures), "seconds": seconds})
    free = sum(worker.free for worker in taking)
    if free:
        return Reason(Why.UNPLACED, count, {"free_slots": free})
    return Reason(Why.SLOTS_TAKEN, count, _taken(taking, situation.cluster) | {"leaving_workers": leaving})


def _taken(taking: Sequence[Worker], cluster: str) -> dict[str, Any]:
    """Returns who has the slots; of groups of other clusters, which not all may see, it is how many."""
    instances = [instance for worker in taking for instance in worker.instances]
    here = Counter(instance.group for instance in instances if instance.cluster == cluster)
    named = sorted(here.items(), key=lambda one: (-one[1], one[0]))[:GROUPS_NAMED_MAX]
    return {
        "slots": sum(worker.slots for worker in taking),
        "groups": [{"group": group, "count": count} for group, count in named],
        "others": len(instances) - sum(count for _group, count in named),
        "ending": sum(instance.is_ending for instance in instances),
    }
