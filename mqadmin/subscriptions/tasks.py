"""Celery: members are asked in turn, old subscriptions are removed (queue `jobs`; beat starts both)."""

from __future__ import annotations

import logging

from celery import shared_task
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.subscriptions import asking, retention

logger = logging.getLogger(__name__)


@shared_task
def ask_members() -> None:
    """Asks one round of each cluster; where nobody's turn it is, it reads one index.

    A cluster that fails leaves the others their round.
    """
    for cluster in Cluster.objects.order_by("pk"):
        try:
            asking.ask_round(cluster, timezone.now())
        except Exception:
            logger.exception("the members of %s were not asked", cluster.name)


@shared_task
def remove_old_subscriptions() -> None:
    count = retention.remove_old(timezone.now())
    if count:
        logger.info(
            "%d subscriptions and members that ended more than %d days ago were removed", count, retention.KEPT_FOR.days
        )
