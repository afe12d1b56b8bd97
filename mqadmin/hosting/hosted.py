"""Reads the instances of the groups that this project's own workers run.

The consumer runtime hosts on one cluster alone, the one that the setting MQADMIN_NAMESRV names.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.utils.translation import gettext as _

from consumer.models import HostedGroup, InstanceLease, LeaseState
from mqadmin.actions.declaration import ActionRefused


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
    if namesrv != settings.MQADMIN_NAMESRV:
        return None
    return HostedGroup.objects.filter(group=group_name).first()


def required_group(namesrv: str, group_name: str) -> HostedGroup:
    """Returns the row, too. Raises ActionRefused for a group that is not hosted."""
    row = hosted_group(namesrv, group_name)
    if row is None:
        raise ActionRefused(
            _("%(group)s is not hosted by this project: its number of instances is set where it runs.")
            % {"group": group_name}
        )
    return row
