"""Celery: following all of our clusters (queue `following`), polling Apache's (queue `jobs`); beat starts both.

    celery -A mqadmin worker -Q following -P threads -c 1

Following is one long task under a lease; any pool will do, with `threads` its worker is a single process.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Any, cast

from celery import Task, shared_task
from celery.signals import worker_init, worker_shutting_down
from django.utils import timezone

from mqadmin.clusters.default_cluster import ensure_default_cluster
from mqadmin.clusters.models import POLLED_KINDS, Cluster
from mqadmin.observing import leases, polling_claim
from mqadmin.observing.following import Follower
from remoting.shutdown_signal import ShutdownSignal


@shared_task
def ensure_observing() -> None:
    """Starts, every few seconds, the follower where none is alive, and a cycle of polling where one is due."""
    now = timezone.now()
    ensure_default_cluster()
    for cluster in polling_claim.in_turn():
        if polling_claim.offer(cluster, now):
            poll_cluster.apply_async(args=(cluster.pk,), expires=polling_claim.OFFERED_FOR_S)
    if Cluster.objects.exclude(kind__in=POLLED_KINDS).exists() and (holder := leases.grant(now)):
        follow_clusters.apply_async(args=(str(holder),), expires=leases.LEASE_S)


@shared_task(bind=True)
def follow_clusters(self: Task[Any, None], holder: str) -> None:
    """Runs until its worker stops or the lease is lost: a task of days or weeks."""
    shutdown: ShutdownSignal = cast(Any, self.app).following_shutdown
    asyncio.run(Follower(uuid.UUID(holder), self.request.hostname or "", shutdown.wait).run())


@shared_task
def poll_cluster(cluster_id: int) -> None:
    """Runs one cycle, unless another worker has one of that cluster."""
    polling_claim.run_cycle(cluster_id, timezone.now())


@worker_init.connect
def make_shutdown_signal(sender: Any, **_: Any) -> None:
    """Makes the signal before the worker forks its children, so that they inherit it."""
    sender.app.following_shutdown = ShutdownSignal()


@worker_shutting_down.connect
def stop_following(**_: Any) -> None:
    """Sets the signal, and does nothing else: Celery calls it in a signal handler of the main process."""
    shutdown: ShutdownSignal | None = getattr(follow_clusters.app, "following_shutdown", None)
    if shutdown is not None:
        shutdown.set()
