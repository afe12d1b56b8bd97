"""Groups whose instances our own project's workers run: what the consumer runtime's rows say of them."""

from __future__ import annotations

from mqadmin.clusters.models import Cluster
from mqadmin.clusters.shapes import HostedFacts


def facts(cluster: Cluster, group_name: str) -> HostedFacts | None:
    """None for a group that this project does not host, or not on this cluster."""
    return None
