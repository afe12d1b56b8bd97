"""Of brokers of ours that a follower watches: whether anything can have come since their delay queues were read.

The row of such a broker says up to which of its changes its watch was read, and every message that is stored is a
change. So while it says what it said before the queues were read to their ends, nothing new is in them.
"""

from __future__ import annotations

from datetime import datetime

from mqadmin.clusters.models import Broker, Cluster, ClusterKind, ClusterState

_ANSWERING = (ClusterState.REACHABLE, ClusterState.PARTIAL)


def watched_until(cluster: Cluster) -> datetime | None:
    """Returns up to when the rows of its brokers that answer are true by the word of the follower; None: none gives it.

    The cluster was read `with_freshness`. Of one that rests between two answers, rows are older.
    """
    is_current = cluster.kind == ClusterKind.OURS and cluster.state in _ANSWERING and cluster.resting_since is None
    return cluster.followed_until if is_current else None


def has_news(cluster: Cluster, broker: Broker, boot: str, revision: int) -> bool:
    """Returns whether something may have come to a broker that was read when its watch had been read so far."""
    is_known = bool(boot) and broker.name not in cluster.brokers_away
    return not is_known or (broker.boot, broker.revision) != (boot, revision)
