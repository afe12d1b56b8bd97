"""Celery: the hot window is sampled and thinned (queue `jobs`; beat starts it)."""

from __future__ import annotations

import logging

from celery import shared_task
from django.db import Error as DatabaseError
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.lag import retention, sampling

logger = logging.getLogger(__name__)


@shared_task
def sample_lag() -> None:
    """Takes a cycle of each cluster that is due for one. One that cannot be written now is late, and says so then."""
    for cluster in Cluster.objects.with_freshness():
        try:
            if sampling.sample_cluster(cluster, timezone.now()) is not None:
                retention.step(cluster, timezone.now())
        except DatabaseError as error:
            logger.warning("cluster %s was not sampled: %s", cluster.name, error)
