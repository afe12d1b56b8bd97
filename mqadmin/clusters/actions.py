"""Changes that people make. Each is checked, carried out and written into the audit, refusals too.

`check_…` raises ActionRefused with a sentence for the person; `do_…` may be called only after it.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.db import transaction
from django.utils.translation import gettext as _

from consumer.models import HostedGroup
from mqadmin.audit.models import AuditEntry, Outcome
from mqadmin.clusters.models import Cluster
from mqadmin.hosting.hosted import hosted_group
from mqadmin.live.events import Change, ChangeKind, tell_after_commit

SET_WANTED_INSTANCES = "set_wanted_instances"
_MAY_SCALE = "mq_consumer.change_hostedgroup"

Person = AbstractBaseUser | AnonymousUser


class ActionRefused(Exception):
    """The text says what was refused and what to do now."""


def set_wanted_instances(person: Person, cluster_name: str, group_name: str, wanted: int) -> None:
    """How many instances of a hosted group the workers shall run. Raises ActionRefused, Cluster.DoesNotExist."""
    cluster = Cluster.objects.get(name=cluster_name)
    try:
        check_set_wanted_instances(person, cluster, group_name, wanted)
    except ActionRefused as refusal:
        AuditEntry.objects.create(
            actor=person.get_username(),
            action=SET_WANTED_INSTANCES,
            cluster=cluster.name,
            subject=group_name,
            after={"wanted_instances": wanted},
            outcome=Outcome.REFUSED,
            reason=str(refusal),
        )
        raise
    do_set_wanted_instances(person, cluster, group_name, wanted)


def check_set_wanted_instances(person: Person, cluster: Cluster, group_name: str, wanted: int) -> None:
    if not isinstance(person, PermissionsMixin) or not person.has_perm(_MAY_SCALE):
        raise ActionRefused(_("You may not change how many instances run: ask an administrator for the right."))
    if hosted_group(cluster.namesrv, group_name) is None:
        raise ActionRefused(
            _("%(group)s is not hosted by this project: its number of instances is set where it runs.")
            % {"group": group_name}
        )
    if not 0 <= wanted <= settings.MQADMIN_INSTANCES:
        raise ActionRefused(
            _("Between 0 and %(most)d instances can run here: MQADMIN_INSTANCES sets the most.")
            % {"most": settings.MQADMIN_INSTANCES}
        )


def do_set_wanted_instances(person: Person, cluster: Cluster, group_name: str, wanted: int) -> None:
    with transaction.atomic():
        row = HostedGroup.objects.select_for_update().get(group=group_name)
        AuditEntry.objects.create(
            actor=person.get_username(),
            action=SET_WANTED_INSTANCES,
            cluster=cluster.name,
            subject=group_name,
            before={"wanted_instances": row.wanted_instances},
            after={"wanted_instances": wanted},
            outcome=Outcome.DONE,
        )
        row.wanted_instances = wanted
        row.save(update_fields=["wanted_instances", "updated_at"])
        tell_after_commit([Change(ChangeKind.GROUP, cluster.name, group_name)])
