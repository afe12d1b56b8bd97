"""Whether a cluster answers, since when, and why not: the fields of its own row."""

from __future__ import annotations

import logging
from datetime import datetime

from mqadmin.clusters.models import Cluster, ClusterKind, ClusterState
from mqadmin.live.events import Change, ChangeKind, tell_after_commit

logger = logging.getLogger(__name__)


def note_reachable(cluster: Cluster, kind: ClusterKind, now: datetime, *, partly: str = "") -> None:
    """`partly`: which brokers did not answer. The rows are true up to now only when all did."""
    state = ClusterState.PARTIAL if partly else ClusterState.REACHABLE
    _note(cluster, state, partly, now)
    cluster.kind = kind
    cluster.last_synced_at = cluster.last_synced_at if partly else now
    cluster.save(update_fields=["kind", "last_synced_at"])


def note_unreachable(cluster: Cluster, reason: str, now: datetime) -> None:
    _note(cluster, ClusterState.UNREACHABLE, reason, now)


def _note(cluster: Cluster, state: ClusterState, error: str, now: datetime) -> None:
    is_news = (cluster.state, cluster.last_error) != (state, error)
    if cluster.state != state:
        cluster.state_since = now
        logger.info("cluster %s is %s%s", cluster.name, state.label, f": {error}" if error else "")
    cluster.state, cluster.last_error, cluster.last_tried_at = state, error, now
    cluster.save(update_fields=["state", "state_since", "last_error", "last_tried_at"])
    if is_news:
        tell_after_commit([Change(ChangeKind.CLUSTER, cluster.name)])
