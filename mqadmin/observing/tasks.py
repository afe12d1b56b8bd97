"""Celery: following our clusters, polling Apache's, pruning. All on the queue `jobs`; beat starts them (`beat.py`)."""

from __future__ import annotations

import logging
import uuid
from typing import Any

from celery import Task, shared_task
from celery.signals import worker_shutting_down
from django.db import close_old_connections
from django.utils import timezone

from mqadmin.clusters.default_cluster import ensure_default_cluster
from mqadmin.clusters.models import Cluster, ClusterKind
from mqadmin.observing import leases, sampling
from mqadmin.observing.following import follow
from mqadmin.rebalances import recording

logger = logging.getLogger(__name__)


@shared_task
def ensure_following() -> None:
    """Every few seconds: starts a follower where none is alive, and a cycle of polling where one is due."""
    now = timezone.now()
    ensure_default_cluster()
    for cluster in Cluster.objects.all():
        if cluster.kind == ClusterKind.APACHE:
            if sampling.claim(cluster, now):
                poll_cluster.delay(cluster.pk)
        elif holder := leases.grant(cluster, now):
            follow_cluster.delay(cluster.pk, str(holder))


@shared_task(bind=True)
def follow_cluster(self: Task[Any, None], cluster_id: int, holder: str) -> None:
    """Long: until it is asked to stop or loses its lease."""
    follow(cluster_id, uuid.UUID(holder), self.request.hostname or "")


@shared_task
def poll_cluster(cluster_id: int) -> None:
    """Short: one cycle."""
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is not None:
        sampling.sample_once(cluster, timezone.now())


@shared_task
def prune_history() -> None:
    count = recording.prune(timezone.now())
    if count:
        logger.info("%d rebalance events older than %d days were deleted", count, recording.KEPT_FOR.days)


@worker_shutting_down.connect
def tell_followers(sender: str = "", **_: Any) -> None:
    """Runs in the worker's parent; the followers are in its children and wait for nothing but their lease's word."""
    close_old_connections()
    leases.ask_worker_to_stop(sender)
