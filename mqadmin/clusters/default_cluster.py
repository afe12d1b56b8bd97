"""The default cluster: its row follows MQADMIN_NAMESRV, so changing that points the console at another cluster."""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import transaction

from mqadmin.clusters.models import Cluster

logger = logging.getLogger(__name__)


def ensure_default_cluster() -> None:
    """Creates the default cluster's row, or gives it the present address and deletes its brokers of another one."""
    name, namesrv = settings.MQADMIN_DEFAULT_CLUSTER, settings.MQADMIN_NAMESRV
    cluster, is_new = Cluster.objects.get_or_create(name=name, defaults={"namesrv": namesrv})
    if is_new or cluster.namesrv == namesrv:
        return
    logger.warning("cluster %s is now behind %s; it was behind %s", name, namesrv, cluster.namesrv)
    with transaction.atomic():
        cluster.point_at(namesrv)


def is_default_cluster(name: str) -> bool:
    """Returns whether the cluster's row follows MQADMIN_NAMESRV."""
    return name == settings.MQADMIN_DEFAULT_CLUSTER
