"""Which process follows the clusters: one row, changed by conditional updates alone, so of two that race one wins.

The lease is granted when the task is sent, not when it starts: a task that waits for a free process is not sent again
until its lease is over. A holder that does not renew loses it after LEASE_S, which is not shorter because SQLite's one
writer can starve for 6 s behind bulk writes. Renewing is all that observing writes while nothing happens: one row every
RENEW_INTERVAL_S, for all clusters together.
"""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from mqadmin.clusters.models import FollowerLease

LEASE_S = 20
RENEW_INTERVAL_S = 5


def grant(now: datetime) -> uuid.UUID | None:
    """Returns a new holder's name; None while another holds the lease."""
    held = FollowerLease.objects.filter(name=FollowerLease.NAME)
    expires_at = held.values_list("expires_at", flat=True).first()
    if expires_at is not None and expires_at > now:
        return None
    holder, expires_at = uuid.uuid4(), now + timedelta(seconds=LEASE_S)
    _, is_new = FollowerLease.objects.get_or_create(
        name=FollowerLease.NAME, defaults={"holder": holder, "expires_at": expires_at, "taken_at": now}
    )
    if is_new:
        return holder
    taken = held.filter(expires_at__lte=now).update(holder=holder, worker="", expires_at=expires_at, taken_at=now)
    return holder if taken else None


def renewed_at() -> datetime | None:
    """Returns when the lease was renewed last, by whichever holder: up to then its clusters were followed."""
    return FollowerLease.objects.filter(name=FollowerLease.NAME).values_list("renewed_at", flat=True).first()


def renew(holder: uuid.UUID, worker: str, now: datetime) -> bool:
    """Returns False when another holds it now."""
    kept = FollowerLease.objects.filter(holder=holder).update(
        worker=worker, expires_at=now + timedelta(seconds=LEASE_S), renewed_at=now
    )
    return kept > 0


def release(holder: uuid.UUID, now: datetime) -> None:
    """Lets another take it at once."""
    FollowerLease.objects.filter(holder=holder).update(expires_at=now, worker="")
