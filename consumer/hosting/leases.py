"""A lease's steps from pending to ended: each is a conditional update, so that of two processes only one takes it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.dispatch import Signal
from django.utils import timezone

from consumer.hosting.machine import process_start, this_machine
from consumer.models import DesiredState, InstanceLease, LeaseState
from consumer.signals import instance_ended, instance_started

logger = logging.getLogger(__name__)

ALIVE = (LeaseState.STARTING, LeaseState.RUNNING, LeaseState.STOPPING)
OPEN = (LeaseState.PENDING, *ALIVE)
REASON_CHARS_MAX = 500


@dataclass(frozen=True, slots=True)
class Worker:
    """A Celery worker that hosts instances: its node name, and the id of this start of it."""

    node: str
    boot: UUID


def claim(lease_id: UUID, worker: Worker) -> InstanceLease | None:
    """Takes a pending lease for this process; returns None when it was taken, withdrawn or ended before."""
    now = timezone.now()
    taken = InstanceLease.objects.filter(id=lease_id, state=LeaseState.PENDING, desired_state=DesiredState.RUN).update(
        state=LeaseState.STARTING,
        worker=worker.node,
        worker_boot=worker.boot,
        machine=this_machine(),
        pid=os.getpid(),
        process_start=process_start(os.getpid()),
        started_at=now,
        heartbeat_at=now,
    )
    return InstanceLease.objects.select_related("group").get(id=lease_id) if taken else None


def mark_running(lease_id: UUID, client_id: str) -> None:
    now = timezone.now()
    changed = InstanceLease.objects.filter(id=lease_id, state=LeaseState.STARTING).update(
        state=LeaseState.RUNNING, client_id=client_id, heartbeat_at=now
    )
    if changed:
        _send_on_commit(instance_started, lease_id)


def heartbeat(lease_id: UUID) -> DesiredState:
    """Writes the heartbeat; returns what the instance is to do: STOP also when the lease was ended by supervision."""
    if not InstanceLease.objects.filter(id=lease_id, state__in=ALIVE).update(heartbeat_at=timezone.now()):
        return DesiredState.STOP
    return DesiredState(InstanceLease.objects.values_list("desired_state", flat=True).get(id=lease_id))


def mark_stopping(lease_id: UUID) -> None:
    running = InstanceLease.objects.filter(id=lease_id, state__in=(LeaseState.STARTING, LeaseState.RUNNING))
    running.update(state=LeaseState.STOPPING, heartbeat_at=timezone.now())


def end(lease_id: UUID, reason: str, *, is_failure: bool = False) -> bool:
    """Returns True when it was still open."""
    ended = InstanceLease.objects.filter(id=lease_id, state__in=OPEN).update(
        state=LeaseState.ENDED, ended_at=timezone.now(), end_reason=reason[:REASON_CHARS_MAX], is_failure=is_failure
    )
    if ended:
        _send_on_commit(instance_ended, lease_id)
    return bool(ended)


def ask_to_stop(leases: QuerySet[InstanceLease]) -> int:
    """Sets the desired state of those that are alive; returns their number."""
    return leases.filter(state__in=ALIVE).update(desired_state=DesiredState.STOP)


def end_all(lease_ids: Iterable[UUID], reason: str) -> int:
    return sum(end(lease_id, reason) for lease_id in lease_ids)


def _send_on_commit(signal: Signal, lease_id: UUID) -> None:
    """Sends when the transaction is committed: receivers read the row, perhaps from another process."""
    transaction.on_commit(partial(_send, signal, lease_id))


def _send(signal: Signal, lease_id: UUID) -> None:
    lease = InstanceLease.objects.select_related("group").get(id=lease_id)
    for receiver, result in signal.send_robust(sender=InstanceLease, lease=lease):
        if isinstance(result, Exception):
            logger.error("receiver %r failed for %s", receiver, lease, exc_info=result)
