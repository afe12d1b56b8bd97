"""The cluster that the environment names."""

from __future__ import annotations

from django.conf import settings

from mqadmin.clusters.models import Cluster


def ensure_default_cluster() -> None:
    """Its row, where the table has none yet."""
    Cluster.objects.get_or_create(name=settings.MQADMIN_DEFAULT_CLUSTER, defaults={"namesrv": settings.MQADMIN_NAMESRV})
