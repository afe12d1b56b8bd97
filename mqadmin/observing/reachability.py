"""Whether a cluster answers, since when, and why not: the fields of its own row, written when they change."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta

from mqadmin.clusters.models import Cluster, ClusterKind, ClusterState
from mqadmin.observing.signals import (
    ObservationResumed,
    ReachabilityChanged,
    observation_resumed,
    publish,
    reachability_changed,
)

logger = logging.getLogger(__name__)

# A shorter silence is a restart or a hand-over, and what came meanwhile is observed afterwards.
SILENCE_MIN = timedelta(seconds=60)


def note_reachable(cluster: Cluster, kind: ClusterKind, now: datetime, *, partly: str = "") -> None:
    """Writes that the cluster answered. `partly`: which brokers did not; rows are true up to `now` only if all did."""
    cluster.kind, cluster.brokers_away = kind, {}
    cluster.last_synced_at = cluster.last_synced_at if partly else now
    _note(cluster, ClusterState.PARTIAL if partly else ClusterState.REACHABLE, partly, now)


def note_followed(cluster: Cluster, away: Mapping[str, int | None], now: datetime, *, partly: str = "") -> None:
    """Writes that brokers of ours answered. `away`: those that did not, as `Cluster.brokers_away`; `partly`: why."""
    cluster.kind, cluster.brokers_away, cluster.last_synced_at = ClusterKind.OURS, dict(away), now
    _note(cluster, ClusterState.PARTIAL if partly else ClusterState.REACHABLE, partly, now)


def note_unreachable(cluster: Cluster, reason: str, now: datetime, *, true_until: datetime | None = None) -> None:
    """Writes why the cluster does not answer. `true_until`: when it last did, where that is later than the row says."""
    if true_until is not None and (cluster.last_synced_at is None or true_until > cluster.last_synced_at):
        cluster.last_synced_at = true_until
    _note(cluster, ClusterState.UNREACHABLE, reason, now)


def note_resumed(cluster: Cluster, now: datetime, *, true_until: datetime | None = None) -> None:
    """Publishes that the cluster is observed again, when it was not for SILENCE_MIN."""
    known = [moment for moment in (cluster.last_synced_at, true_until) if moment is not None]
    since = max(known, default=None)
    if since is not None and now - since >= SILENCE_MIN:
        publish(observation_resumed, ObservationResumed(cluster, since))


def _note(cluster: Cluster, state: ClusterState, error: str, now: datetime) -> None:
    is_news = (cluster.state, cluster.last_error) != (state, error)
    if cluster.state != state:
        cluster.state_since = now
        logger.info("cluster %s is %s%s", cluster.name, state.label, f": {error}" if error else "")
    cluster.state, cluster.last_error = state, error
    cluster.save(
        update_fields=[
            "state",
            "state_since",
            "last_error",
            "kind",
            "last_synced_at",
            "brokers_away",
        ]
    )
    if is_news:
        publish(reachability_changed, ReachabilityChanged(cluster))
