"""Reads the Celery workers that host instances, and what each runs."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.utils import timezone

from consumer.hosting.declared import differences_now as differences_now
from consumer.hosting.leases import OPEN
from consumer.hosting.supervision import SILENT_AFTER
from consumer.models import DesiredState, InstanceLease, LeaseState, LoopsWorker
from mqadmin.hosting.hosted import console_names

NODE_CHARS_MAX = 255
# More than one install has.
WORKERS_MAX = 500


class WorkerState(StrEnum):
    """Whether a worker takes instances. SILENT: no heartbeat for 30 s."""

    OK = "ok"
    DRAINING = "draining"
    STOPPING = "stopping"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of a group; `key` names that with its cluster, `cluster` is the console's name of it, "" for none.

    `wanted`: how many of the group there shall be. `is_ending`: it is to stop, and has its slot until then.
    """

    group: str
    key: str
    cluster: str
    wanted: int
    is_ending: bool

    def __str__(self) -> str:
        return self.key


@dataclass(frozen=True, slots=True)
class Worker:
    """`slots`: instances that it can run. `instances`: each that it runs, or was given, in the order of groups."""

    node: str
    boot: uuid.UUID
    pid: int
    state: WorkerState
    is_draining: bool
    slots: int
    instances: tuple[Instance, ...]
    started_at: datetime
    heartbeat_at: datetime

    @property
    def free(self) -> int:
        """How many more instances it can run."""
        return max(0, self.slots - len(self.instances))

    @property
    def takes_instances(self) -> bool:
        return self.state == WorkerState.OK


def workers() -> list[Worker]:
    """Returns the workers of the last day by name. Three queries."""
    shown = console_names()
    instances: dict[str, list[Instance]] = defaultdict(list)
    held = InstanceLease.objects.filter(state__in=OPEN).select_related("group")
    for lease in held.order_by("group__group", "group__cluster", "created_at"):
        group = lease.group
        instance = Instance(
            group.group,
            group.key,
            shown.get(group.cluster, ""),
            wanted=0 if group.is_stopped else group.wanted_instances,
            is_ending=lease.state == LeaseState.STOPPING or lease.desired_state != DesiredState.RUN,
        )
        instances[lease.worker].append(instance)
    now = timezone.now()
    return [
        Worker(
            node=row.node,
            boot=row.boot,
            pid=row.pid,
            state=_state(row, now),
            is_draining=row.is_draining,
            slots=row.slots,
            instances=tuple(instances[row.node]),
            started_at=row.started_at,
            heartbeat_at=row.heartbeat_at,
        )
        for row in LoopsWorker.objects.order_by("node")[:WORKERS_MAX]
    ]


def lacking_without(worker: Worker, listed: Sequence[Worker]) -> int:
    """Returns for how many of the worker's instances the others have no slot; one that nobody wants needs none."""
    others = [one for one in listed if one is not worker and one.takes_instances]
    elsewhere = Counter(instance.key for one in others for instance in one.instances if not instance.is_ending)
    here = [instance for instance in worker.instances if not instance.is_ending]
    wanted = {instance.key: instance.wanted for instance in here}
    needed = sum(
        min(count, max(0, wanted[key] - elsewhere[key])) for key, count in Counter(one.key for one in here).items()
    )
    return max(0, needed - sum(one.free for one in others))


def _state(row: LoopsWorker, now: datetime) -> WorkerState:
    if now - row.heartbeat_at > SILENT_AFTER:
        return WorkerState.SILENT
    if row.is_stopping:
        return WorkerState.STOPPING
    return WorkerState.DRAINING if row.is_draining else WorkerState.OK
