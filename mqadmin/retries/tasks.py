"""Celery: failed attempts are read where brokers keep them, and old ones removed (queue `jobs`)."""

from __future__ import annotations

import logging

from celery import shared_task
from django.utils import timezone

from mqadmin.clusters.models import Cluster, ClusterState
from mqadmin.retries import indexing

logger = logging.getLogger(__name__)


@shared_task
def index_retries() -> None:
    for cluster in Cluster.objects.exclude(state=ClusterState.UNREACHABLE):
        indexing.index_step(cluster)


@shared_task
def remove_old_retries() -> None:
    count = indexing.remove_old(timezone.now())
    if count:
        logger.info("%d failed attempts that are older than what is kept were removed", count)
