"""Which worker polls a cluster: a claim in the cluster's row that has an end, changed by conditional updates alone.

A cycle is offered to workers when it is due and nobody has one, those clusters first that were not asked for longest;
the worker that begins it claims it. So a task that waits in the queue claims nothing. When it has waited for too long
(OFFERED_FOR_S) it expires, and is offered again, before those that had their turn. A claim is kept up while the cycle
asks and writes, and released when it has ended, however it did. One whose worker was killed ends by itself; should that
cycle be alive after all, it learns so before it writes its next part, and writes no more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from mqadmin.clusters.claims import is_free
from mqadmin.clusters.models import POLLED_KINDS, Cluster
from mqadmin.observing.polling_cycle import POLL_INTERVAL_S, poll_once

logger = logging.getLogger(__name__)

# Just below a whole number of beats, so that a beat that is a little early does not skip one. A task waits for a free
# worker no longer, since the next cycle is offered then.
OFFERED_FOR_S = POLL_INTERVAL_S - 1
# More than a cycle asks at a stretch (four rounds of 20 s and one of 3 s, where nothing answers), and than its largest
# part takes to be written (seconds). For so long a worker that was killed keeps others from the cluster.
CLAIMED_FOR = timedelta(seconds=120)
# A younger claim is only looked at. Well below the minute after which a cluster counts as one that nobody polls.
KEPT_UP_EVERY = timedelta(seconds=15)


class ClaimLost(Exception):
    """Another worker may have the cluster by now, or it has other name servers, or is gone."""


@dataclass(slots=True)
class PollingClaim:
    """`until`: its end, by which its row knows it."""

    cluster_id: int
    until: datetime
    clock: Callable[[], datetime] = timezone.now

    def keep(self) -> None:
        """Moves its end, where it is not young. Raises ClaimLost: then nothing more is to be written."""
        now = self.clock()
        until = now + CLAIMED_FOR
        if until - self.until < KEPT_UP_EVERY:
            is_held = self._held().exists()
        else:
            # A cluster whose cycles take long is polled all the same.
            is_held = self._held().update(poll_claimed_until=until, last_tried_at=now) > 0
            self.until = until
        if not is_held:
            raise ClaimLost

    def release(self) -> None:
        """Lets others have the next cycle; does nothing where it was lost."""
        self._held().update(poll_claimed_until=None, last_tried_at=self.clock())

    def _held(self) -> QuerySet[Cluster]:
        return Cluster.objects.filter(pk=self.cluster_id, poll_claimed_until=self.until)


def in_turn() -> QuerySet[Cluster]:
    """Returns the polled clusters, those first that were not asked for longest."""
    return Cluster.objects.filter(kind__in=POLLED_KINDS).order_by(F("last_tried_at").asc(nulls_first=True), "pk")


def offer(cluster: Cluster, now: datetime) -> bool:
    """Returns whether a cycle is due that nobody has, and that nobody else offers to workers."""
    is_due = Q(poll_offered_at=None) | Q(poll_offered_at__lte=now - timedelta(seconds=OFFERED_FOR_S))
    free = Cluster.objects.filter(is_due, is_free(now, "poll_claimed_until"), pk=cluster.pk)
    return free.update(poll_offered_at=now) > 0


def take(cluster_id: int, now: datetime) -> PollingClaim | None:
    """Returns the claim of the cycle; None where another worker has it, or the cluster is not polled any more."""
    until = now + CLAIMED_FOR
    free = Cluster.objects.filter(is_free(now, "poll_claimed_until"), pk=cluster_id, kind__in=POLLED_KINDS)
    is_taken = free.update(poll_claimed_until=until, last_tried_at=now) > 0
    return PollingClaim(cluster_id, until) if is_taken else None


def run_cycle(cluster_id: int, now: datetime) -> bool:
    """Runs a cycle, unless another worker has one or the cluster is not polled; returns whether it did."""
    claim = take(cluster_id, now)
    if claim is None:
        return False
    try:
        # Read under the claim: the cycle before has left there where to go on.
        poll_once(Cluster.objects.get(pk=cluster_id), now, claim.keep)
    except (ClaimLost, Cluster.DoesNotExist):
        logger.warning("cluster %d: a cycle of polling was overtaken, and writes no more", cluster_id)
    finally:
        claim.release()
    return True
