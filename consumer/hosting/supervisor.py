"""Carries out supervision: reads the rows, lets `supervision.py` decide, writes rows and sends tasks (every 2 s).

Reads first without a lock, since most times there is nothing to do; decides again under one before it writes, so that
two supervisors at the same time do the work of one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from consumer.hosting import leases
from consumer.hosting.loops_worker import alive_workers
from consumer.hosting.machine import is_process_gone
from consumer.hosting.supervision import (
    FAILURES_COUNT_FOR,
    HostingSnapshot,
    LeaseSnapshot,
    SupervisionPlan,
    decide,
)
from consumer.listener import GroupSpec
from consumer.models import HostedGroup, InstanceLease, LeaseState, LoopsWorker

logger = logging.getLogger(__name__)

# Ended leases are the history of a group's instances.
KEEP_ENDED_FOR = timedelta(days=7)
KEEP_WORKERS_FOR = timedelta(days=1)

# Sends the task that hosts a lease to a worker, named by its node.
Offer = Callable[[UUID, str], None]


def supervise(specs: Mapping[str, GroupSpec], offer: Offer) -> SupervisionPlan:
    """Decides and carries it out, once. Raises what the database and `offer` raise."""
    declare(specs)
    if decide(snapshot(specs)).is_empty:
        return SupervisionPlan()
    with transaction.atomic():
        # On SQLite the transaction itself is the lock.
        list(HostedGroup.objects.select_for_update().order_by("id"))
        plan = decide(snapshot(specs))
        made = _carry_out(plan)
    for lease in made:
        offer(lease.id, lease.worker)
    return plan


def declare(specs: Mapping[str, GroupSpec]) -> None:
    """Makes rows for the declared groups; a number that has changed in the code becomes the wanted number."""
    known = {row.key: row for row in HostedGroup.objects.all()}
    for key, spec in specs.items():
        row = known.get(key)
        declared, objective_s = spec.options["wanted_instances"], spec.options["lag_objective_s"]
        if row is None:
            numbers = {"wanted_instances": declared, "declared_instances": declared, "lag_objective_s": objective_s}
            HostedGroup.objects.get_or_create(cluster=spec.cluster, group=spec.group, defaults=numbers)
        elif row.declared_instances != declared:
            row.wanted_instances = row.declared_instances = declared
            row.save(update_fields=["wanted_instances", "declared_instances", "updated_at"])
            logger.info("group %s: %d instances wanted, as its listeners say now", key, declared)
        if row is not None and row.lag_objective_s != objective_s:
            row.lag_objective_s = objective_s
            row.save(update_fields=["lag_objective_s", "updated_at"])


def snapshot(specs: Mapping[str, GroupSpec]) -> HostingSnapshot:
    now = timezone.now()
    workers = alive_workers()
    open_leases = InstanceLease.objects.filter(state__in=leases.OPEN).select_related("group")
    failures: dict[str, list[datetime]] = {}
    recent = InstanceLease.objects.filter(
        state=LeaseState.ENDED, is_failure=True, ended_at__gt=now - FAILURES_COUNT_FOR
    ).select_related("group")
    for lease in recent:
        if lease.ended_at is not None:
            failures.setdefault(lease.group.key, []).append(lease.ended_at)
    return HostingSnapshot(
        now=now,
        wanted={row.key: _wanted(row, specs) for row in HostedGroup.objects.all()},
        leases=[_lease_snapshot(lease) for lease in open_leases],
        slots={worker.node: worker.slots for worker in workers if not worker.is_stopping},
        leaving=frozenset(worker.node for worker in workers if worker.is_draining or worker.is_stopping),
        failures=failures,
    )


def _wanted(row: HostedGroup, specs: Mapping[str, GroupSpec]) -> int:
    return row.wanted_instances if row.key in specs and not row.is_stopped else 0


def prune() -> None:
    """Deletes leases that ended, and workers that sent their last heartbeat, long ago."""
    now = timezone.now()
    old_leases = InstanceLease.objects.filter(state=LeaseState.ENDED, ended_at__lt=now - KEEP_ENDED_FOR)
    if old_leases.exists():
        old_leases.delete()
    old_workers = LoopsWorker.objects.filter(heartbeat_at__lt=now - KEEP_WORKERS_FOR)
    if old_workers.exists():
        old_workers.delete()


def _lease_snapshot(lease: InstanceLease) -> LeaseSnapshot:
    return LeaseSnapshot(
        id=lease.id,
        group=lease.group.key,
        worker=lease.worker,
        state=lease.state,
        desired_state=lease.desired_state,
        created_at=lease.created_at,
        heartbeat_at=lease.heartbeat_at,
        is_gone=is_process_gone(lease.machine, lease.pid, lease.process_start),
    )


def _carry_out(plan: SupervisionPlan) -> list[InstanceLease]:
    """Returns the leases made, to be offered to their workers when the transaction is committed."""
    for lease_id, reason in plan.lost:
        if leases.end(lease_id, reason):
            lease = InstanceLease.objects.select_related("group").get(id=lease_id)
            logger.warning("group %s: an instance on %s was lost: %s", lease.group.key, lease.worker, reason)
    surplus = InstanceLease.objects.filter(id__in=plan.surplus)
    leases.ask_to_stop(surplus)
    leases.end_all(surplus.filter(state=LeaseState.PENDING).values_list("id", flat=True), "withdrawn")
    rows = {row.key: row for row in HostedGroup.objects.all()} if plan.missing else {}
    made = [InstanceLease.objects.create(group=rows[place.group], worker=place.worker) for place in plan.missing]
    for lease in made:
        logger.info("group %s: one more instance on %s", lease.group.key, lease.worker)
    return made
