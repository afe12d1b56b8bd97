"""A lease's way from wanted to ended: each step a conditional update that says whether it was ours to do."""

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
from consumer.models import InstanceLease, LeaseState, Word
from consumer.signals import instance_ended, instance_started

logger = logging.getLogger(__name__)

ALIVE = (LeaseState.STARTING, LeaseState.RUNNING, LeaseState.STOPPING)
OPEN = (LeaseState.WANTED, *ALIVE)
REASON_CHARS_MAX = 500


@dataclass(frozen=True, slots=True)
class Worker:
    """The Celery worker that hosts: node name and boot."""

    node: str
    boot: UUID


def claim(lease_id: UUID, worker: Worker) -> InstanceLease | None:
    """The lease, ours to run; None when it was taken, called off or ended before."""
    now = timezone.now()
    taken = InstanceLease.objects.filter(id=lease_id, state=LeaseState.WANTED, wanted_word=Word.RUN).update(
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
        _tell(instance_started, lease_id)


def beat(lease_id: UUID) -> Word:
    """Says that the instance is alive; what it is wanted to do. A lease that others have ended says stop."""
    if not InstanceLease.objects.filter(id=lease_id, state__in=ALIVE).update(heartbeat_at=timezone.now()):
        return Word.STOP
    return Word(InstanceLease.objects.values_list("wanted_word", flat=True).get(id=lease_id))


def mark_stopping(lease_id: UUID) -> None:
    running = InstanceLease.objects.filter(id=lease_id, state__in=(LeaseState.STARTING, LeaseState.RUNNING))
    running.update(state=LeaseState.STOPPING, heartbeat_at=timezone.now())


def end(lease_id: UUID, reason: str, *, is_failure: bool = False) -> bool:
    """True when it was still open."""
    ended = InstanceLease.objects.filter(id=lease_id, state__in=OPEN).update(
        state=LeaseState.ENDED, ended_at=timezone.now(), end_reason=reason[:REASON_CHARS_MAX], is_failure=is_failure
    )
    if ended:
        _tell(instance_ended, lease_id)
    return bool(ended)


def ask_to_stop(leases: QuerySet[InstanceLease]) -> int:
    """How many of them run and will hear it."""
    return leases.filter(state__in=ALIVE).update(wanted_word=Word.STOP)


def end_all(lease_ids: Iterable[UUID], reason: str) -> int:
    return sum(end(lease_id, reason) for lease_id in lease_ids)


def _tell(signal: Signal, lease_id: UUID) -> None:
    """Once it is committed: receivers look at the row, perhaps from another process."""
    transaction.on_commit(partial(_send, signal, lease_id))


def _send(signal: Signal, lease_id: UUID) -> None:
    lease = InstanceLease.objects.select_related("group").get(id=lease_id)
    for receiver, result in signal.send_robust(sender=InstanceLease, lease=lease):
        if isinstance(result, Exception):
            logger.error("receiver %r failed for %s", receiver, lease, exc_info=result)
