"""The last hour of a cluster's lag, the sum over all its groups, and the gaps in it and in its groups' histories."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db.models import Sum

from mqadmin.clusters.bulk import chunks, update
from mqadmin.clusters.models import Cluster, Group
from mqadmin.lag import history
from mqadmin.lag.models import LagHistory


def append_due(cluster_id: int, now: datetime) -> int:
    """Appends a sample when some group's lag changed since the last one, once per half minute; returns rows written."""
    cluster = Cluster.objects.filter(pk=cluster_id, lag_due_at__lte=now).first()
    if cluster is None:
        return 0
    now_s = int(now.timestamp())
    if history.has_room(cluster.lag_history, now_s):
        lag = cluster.groups.filter(is_system=False).aggregate(lag=Sum("lag"))["lag"]
        cluster.lag_history = history.appended(cluster.lag_history, history.LagSample(now_s, lag))
        cluster.lag_due_at = None
    else:
        cluster.lag_due_at = datetime.fromtimestamp(history.next_bucket_s(now_s), UTC)
    cluster.save(update_fields=["lag_history", "lag_due_at"])
    return 1


def leave_a_gap(cluster: Cluster, since: datetime) -> int:
    """Says "not known" from `since` on, instead of drawing on; every group is measured again. Returns rows written."""
    unknown = history.LagSample(int(since.timestamp()), None)
    written_count = 1
    for batch in chunks(LagHistory.objects.filter(group__cluster=cluster)):
        for row in batch:
            row.samples = history.appended(row.samples, unknown)
            # When what is found now died is not known.
            row.failing = b""
        update(LagHistory, batch, ["samples", "failing"])
        Group.objects.filter(pk__in=[row.group_id for row in batch]).update(due_at=since)
        written_count += 2 * len(batch)
    cluster.lag_history = history.appended(cluster.lag_history, unknown)
    cluster.lag_due_at = since
    cluster.save(update_fields=["lag_history", "lag_due_at"])
    return written_count
