"""Celery: the timeline learns how long consumption stood, and is pruned (queue `jobs`; beat starts it)."""

from __future__ import annotations

import logging

from celery import shared_task
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.rebalances import judging, retention

logger = logging.getLogger(__name__)


@shared_task
def judge_pauses() -> None:
    """Judges what is due on each cluster; one that fails leaves the others theirs."""
    for cluster in Cluster.objects.all():
        try:
            judging.judge(cluster, timezone.now())
        except Exception:
            logger.exception("pauses of rebalances on cluster %s were not judged", cluster.name)


@shared_task
def prune_history() -> None:
    count = retention.prune(timezone.now())
    if count:
        logger.info("%d rebalance events older than %d days were deleted", count, retention.KEPT_FOR.days)
