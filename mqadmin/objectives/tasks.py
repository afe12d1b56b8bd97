"""Celery: what listeners' code allows becomes an objective (queue `jobs`; beat starts it)."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from consumer.conf import cluster_behind
from consumer.models import HostedGroup
from mqadmin.clusters.models import Cluster
from mqadmin.objectives import keeping


@shared_task
def keep_declared() -> None:
    """Reads two small tables for each cluster that the consumer runtime knows; writes what has changed."""
    for cluster in Cluster.objects.all():
        hosted = cluster_behind(cluster.namesrv)
        if hosted is not None:
            rows = HostedGroup.objects.filter(cluster=hosted, lag_objective_s__isnull=False)
            declared = {group: seconds for group, seconds in rows.values_list("group", "lag_objective_s") if seconds}
            keeping.keep_declared(cluster, declared, timezone.now())
