"""Reads the Celery workers that host instances, and what each runs."""

from __future__ import annotations

import uuid
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.utils import timezone

from consumer.hosting.leases import OPEN
from consumer.hosting.supervision import SILENT_AFTER
from consumer.models import InstanceLease, LoopsWorker

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
class Worker:
    """`slots`: instances that it can run. `groups`: the group of each that it runs, or was given, in their order."""

    node: str
    boot: uuid.UUID
    pid: int
    state: WorkerState
    is_draining: bool
    slots: int
    groups: tuple[str, ...]
    started_at: datetime
    heartbeat_at: datetime

    @property
    def free(self) -> int:
        """How many more instances it can run."""
        return max(0, self.slots - len(self.groups))

    @property
    def takes_instances(self) -> bool:
        return self.state == WorkerState.OK


def workers() -> list[Worker]:
    """Returns the workers of the last day by name. Two queries."""
    groups: dict[str, list[str]] = defaultdict(list)
    held = InstanceLease.objects.filter(state__in=OPEN).order_by("group__group", "created_at")
    for node, group in held.values_list("worker", "group__group"):
        groups[node].append(group)
    now = timezone.now()
    return [
        Worker(
            node=row.node,
            boot=row.boot,
            pid=row.pid,
            state=_state(row, now),
            is_draining=row.is_draining,
            slots=row.slots,
            groups=tuple(groups[row.node]),
            started_at=row.started_at,
            heartbeat_at=row.heartbeat_at,
        )
        for row in LoopsWorker.objects.order_by("node")[:WORKERS_MAX]
    ]


def _state(row: LoopsWorker, now: datetime) -> WorkerState:
    if now - row.heartbeat_at > SILENT_AFTER:
        return WorkerState.SILENT
    if row.is_stopping:
        return WorkerState.STOPPING
    return WorkerState.DRAINING if row.is_draining else WorkerState.OK
