"""Celery: the timeline learns how long consumption stood, and is pruned (queue `jobs`; beat starts it)."""

from __future__ import annotations

import logging

from celery import shared_task
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.rebalances import judging, recording

logger = logging.getLogger(__name__)


@shared_task
def judge_pauses() -> None:
    for cluster in Cluster.objects.all():
        judging.judge(cluster, timezone.now())


@shared_task
def prune_history() -> None:
    count = recording.prune(timezone.now())
    if count:
        logger.info("%d rebalance events older than %d days were deleted", count, recording.KEPT_FOR.days)
