"""The lease of a cluster's outbox: of several Celery workers one sends at a time.

A holder that is gone loses it after LEASE_S; one that goes on renews it before each portion, which takes less. The
workers' clocks may differ by what is left.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q

from consumer.outbox.models import OutboxLease

LEASE_S = 30.0


def hold(using: str, cluster: str, holder: UUID, now: datetime) -> bool:
    """Takes the lease or renews it; returns whether `holder` has it."""
    leases = OutboxLease.objects.using(using)
    leases.get_or_create(cluster=cluster)
    free = Q(until__lt=now) | Q(holder=None) | Q(holder=holder)
    return bool(leases.filter(free, cluster=cluster).update(holder=holder, until=now + timedelta(seconds=LEASE_S)))


def release(using: str, cluster: str, holder: UUID) -> None:
    """Gives the lease back, if `holder` still has it."""
    OutboxLease.objects.using(using).filter(cluster=cluster, holder=holder).update(holder=None)
