"""Celery: brokers are asked for producers once a minute (queue `jobs`; beat starts it)."""

from __future__ import annotations

import logging

from celery import shared_task
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.producers import asking

logger = logging.getLogger(__name__)


@shared_task
def ask_for_producers() -> None:
    """Asks the brokers of each cluster that answers; one that fails leaves the others their round."""
    for cluster in Cluster.objects.order_by("pk"):
        try:
            asking.ask_round(cluster, timezone.now())
        except Exception:
            logger.exception("the brokers of %s were not asked for producers", cluster.name)
