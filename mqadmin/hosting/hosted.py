"""The groups whose instances this project's own workers run: how many there are, and what operators want of them.

The consumer runtime has names of its own for clusters (settings MQADMIN_NAMESRV and MQADMIN_CLUSTERS); one that the
console shows is known by its name servers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from consumer.conf import cluster_behind
from consumer.models import HostedGroup, InstanceLease, LeaseState
from mqadmin.actions.declaration import ActionRefused, ItemOutcome, Preview
from mqadmin.clusters.models import Cluster


@dataclass(frozen=True, slots=True)
class HostedInstances:
    """The instances of one hosted group; `instances_max` is the setting MQADMIN_INSTANCES. See HostedGroup."""

    wanted: int
    is_stopped: bool
    running: int
    starting: int
    instances_max: int


def hosted_instances(namesrv: str, group_name: str) -> HostedInstances | None:
    """Counts the group's instances; None for a group that is not hosted on the cluster behind `namesrv`."""
    group = hosted_group(namesrv, group_name)
    if group is None:
        return None
    leases = InstanceLease.objects.filter(group=group)
    return HostedInstances(
        wanted=group.wanted_instances,
        is_stopped=group.is_stopped,
        running=leases.filter(state=LeaseState.RUNNING).count(),
        starting=leases.filter(state__in=(LeaseState.PENDING, LeaseState.STARTING)).count(),
        instances_max=settings.MQADMIN_INSTANCES,
    )


def hosted_group(namesrv: str, group_name: str) -> HostedGroup | None:
    """Returns the row of a group that this project hosts on the cluster behind `namesrv`."""
    cluster = cluster_behind(namesrv)
    if cluster is None:
        return None
    return HostedGroup.objects.filter(cluster=cluster, group=group_name).first()


def console_names() -> dict[str, str]:
    """Returns the console's name of each cluster of the consumer runtime that the console shows, too."""
    shown = ((cluster_behind(namesrv), name) for name, namesrv in Cluster.objects.values_list("name", "namesrv"))
    return {cluster: name for cluster, name in shown if cluster is not None}


def required_group(namesrv: str, group_name: str) -> HostedGroup:
    """Returns the row, too. Raises ActionRefused for a group that is not hosted."""
    row = hosted_group(namesrv, group_name)
    if row is None:
        raise ActionRefused(
            _("%(group)s is not hosted by this project: its number of instances is set where it runs.")
            % {"group": group_name}
        )
    return row


def write_row(preview: Preview[HostedGroup], **values: Any) -> Iterator[ItemOutcome]:
    """Carries out the preview of one change: writes the values into the group's row, which supervision reads."""
    (change,) = preview.changes
    if not change.is_change:
        yield change.unchanged()
        return
    with transaction.atomic():
        row = HostedGroup.objects.select_for_update().filter(pk=preview.plan.pk).first()
        if row is None:
            yield change.failed(_("The group is not hosted any more."))
            return
        for name, value in values.items():
            setattr(row, name, value)
        row.save(update_fields=[*values, "updated_at"])
    yield change.done()
