"""Groups whose instances our own project's workers run: what the consumer runtime's rows say of them.

The runtime hosts on one cluster alone, the one that `MQADMIN_NAMESRV` names.
"""

from __future__ import annotations

from django.conf import settings

from consumer.models import HostedGroup, InstanceLease, LeaseState
from mqadmin.clusters.models import Cluster
from mqadmin.clusters.shapes import HostedFacts


def is_host_of(cluster: Cluster) -> bool:
    return cluster.namesrv == settings.MQADMIN_NAMESRV


def facts(cluster: Cluster, group_name: str) -> HostedFacts | None:
    """None for a group that this project does not host, or not on this cluster."""
    group = HostedGroup.objects.filter(group=group_name).first() if is_host_of(cluster) else None
    if group is None:
        return None
    leases = InstanceLease.objects.filter(group=group)
    return HostedFacts(
        wanted_instances=group.wanted_instances,
        running_instances=leases.filter(state=LeaseState.RUNNING).count(),
        starting_instances=leases.filter(state__in=(LeaseState.WANTED, LeaseState.STARTING)).count(),
        instances_max=settings.MQADMIN_INSTANCES,
    )
