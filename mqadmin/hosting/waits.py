"""Reads why instances of a group wait: the rows that supervision goes by."""

from __future__ import annotations

from django.utils import timezone

from consumer.hosting.leases import OPEN
from consumer.hosting.supervision import FAILURES_COUNT_FOR, SILENT_AFTER
from consumer.models import DesiredState, InstanceLease, LeaseState, LoopsWorker
from mqadmin.clusters.models import Cluster
from mqadmin.hosting.hosted import hosted_group
from mqadmin.hosting.waiting import OwnLease, Reason, Situation, missing_count, reasons
from mqadmin.hosting.workers import workers


def waits(cluster: Cluster, group_name: str) -> tuple[Reason, ...]:
    """Returns why fewer instances run than wanted; empty for a group that has them, or is not hosted.

    Two queries for one that has them, else seven.
    """
    group = hosted_group(cluster.namesrv, group_name)
    if group is None:
        return ()
    now = timezone.now()
    own = InstanceLease.objects.filter(group=group)
    going_on = own.filter(state__in=OPEN, desired_state=DesiredState.RUN).exclude(state=LeaseState.STOPPING)
    leases = [OwnLease(lease.state, lease.heartbeat_at or lease.created_at) for lease in going_on]
    if not missing_count(group.wanted_instances, leases, now):
        return ()
    failed = own.filter(state=LeaseState.ENDED, is_failure=True, ended_at__gt=now - FAILURES_COUNT_FOR)
    situation = Situation(
        now=now,
        cluster=cluster.name,
        wanted=group.wanted_instances,
        is_stopped=group.is_stopped,
        leases=leases,
        workers=workers(),
        failures=[at for at in failed.values_list("ended_at", flat=True) if at is not None],
        is_declared=_is_declared(group.key),
    )
    return reasons(situation)


def _is_declared(key: str) -> bool | None:
    """Tells whether the code of a worker that lives has listeners of the group; None: none has said what it has."""
    alive = LoopsWorker.objects.filter(heartbeat_at__gt=timezone.now() - SILENT_AFTER).exclude(declared={})
    declared = list(alive.values_list("declared", flat=True))
    return any(key in one for one in declared) if declared else None
