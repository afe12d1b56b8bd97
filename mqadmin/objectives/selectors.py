"""Which objectives hold, and held."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q, QuerySet

from mqadmin.clusters.models import Cluster
from mqadmin.objectives.models import Objective
from mqadmin.objectives.values import Allowed, Objectives

# Of one group, on its page: the newest.
HISTORY_MAX = 50


def objectives_of(cluster: Cluster, at: datetime | None = None) -> Objectives:
    """Returns those that hold now, or held at that moment: a report judges by what held then. One query."""
    rows = Objective.objects.filter(cluster=cluster)
    if at is None:
        rows = rows.filter(valid_until=None)
    else:
        rows = rows.filter(Q(valid_until=None) | Q(valid_until__gt=at), valid_from__lte=at)
    return Objectives.of(Allowed(*values) for values in rows.values_list("lag_s", "lag", "group", "is_declared"))


def present(cluster: Cluster, group: str) -> Objective | None:
    """Returns what people have said of exactly this name or pattern."""
    return Objective.objects.filter(cluster=cluster, group=group, is_declared=False, valid_until=None).first()


def history(cluster: Cluster) -> QuerySet[Objective]:
    """Returns all objectives of the cluster, the newest first."""
    return Objective.objects.filter(cluster=cluster).order_by("-valid_from", "-pk")
