"""The cluster that the environment names: who changes MQADMIN_NAMESRV points the console at another one."""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import transaction

from mqadmin.clusters.models import Cluster, ClusterKind, ClusterState

logger = logging.getLogger(__name__)


def ensure_default_cluster() -> None:
    """Its row, with the address that the environment says now. Brokers known under another address are forgotten."""
    name, namesrv = settings.MQADMIN_DEFAULT_CLUSTER, settings.MQADMIN_NAMESRV
    cluster, is_new = Cluster.objects.get_or_create(name=name, defaults={"namesrv": namesrv})
    if is_new or cluster.namesrv == namesrv:
        return
    logger.warning("cluster %s is now behind %s; it was behind %s", name, namesrv, cluster.namesrv)
    with transaction.atomic():
        cluster.brokers.all().delete()
        Cluster.objects.filter(pk=cluster.pk).update(
            namesrv=namesrv,
            rocketmq_name="",
            kind=ClusterKind.UNKNOWN,
            state=ClusterState.NEW,
            last_synced_at=None,
            last_error="",
            topic_cursor="",
            group_cursor="",
        )
