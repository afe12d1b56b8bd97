"""Who follows a cluster: one row, changed by conditional updates alone, so of two that race one wins.

The lease is granted when the task is sent, not when it starts: a task that waits for a free process is not sent again
until its lease is over. A holder that does not renew loses it after LEASE_S; SQLite's one writer can starve for 6 s
behind bulk writes, so it is no shorter.
"""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from django.db.models import Q

from mqadmin.clusters.models import Cluster, FollowLease

LEASE_S = 20
HEARTBEAT_S = 5


def grant(cluster: Cluster, now: datetime) -> uuid.UUID | None:
    """A new holder's name; None while another holds the lease."""
    holder = uuid.uuid4()
    expires_at = now + timedelta(seconds=LEASE_S)
    _, is_new = FollowLease.objects.get_or_create(
        cluster=cluster, defaults={"holder": holder, "expires_at": expires_at, "taken_at": now}
    )
    if is_new:
        return holder
    taken = FollowLease.objects.filter(cluster=cluster, expires_at__lte=now).update(
        holder=holder, worker="", expires_at=expires_at, taken_at=now, stop_asked=False
    )
    return holder if taken else None


def renew(cluster_id: int, holder: uuid.UUID, worker: str, now: datetime) -> bool:
    """False: another holds it now."""
    kept = FollowLease.objects.filter(cluster_id=cluster_id, holder=holder).update(
        worker=worker, expires_at=now + timedelta(seconds=LEASE_S)
    )
    return kept > 0


def is_stop_asked(cluster_id: int, holder: uuid.UUID) -> bool:
    """Also when the lease is another's: this holder has to stop either way."""
    in_force = Q(cluster_id=cluster_id, holder=holder, stop_asked=False)
    return not FollowLease.objects.filter(in_force).exists()


def release(cluster_id: int, holder: uuid.UUID, now: datetime) -> None:
    """Another may take it at once."""
    FollowLease.objects.filter(cluster_id=cluster_id, holder=holder).update(expires_at=now, worker="")


def ask_worker_to_stop(worker: str) -> int:
    """Said by a worker's parent process when it shuts down: its children do not hear of that themselves."""
    return FollowLease.objects.filter(worker=worker).update(stop_asked=True)
