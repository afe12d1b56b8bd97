"""Stops all instances of a hosted group, or starts them again; the number wanted is kept meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from consumer.models import HostedGroup
from mqadmin.actions.declaration import Action, Change, ItemOutcome, Preview, Undo
from mqadmin.actions.switches import undo_of_switch, yes_no
from mqadmin.clusters.models import Cluster
from mqadmin.hosting.hosted import hosted_group, required_group, write_row
from mqadmin.people.words import YES_NO
from remoting.wire.limits import GROUP_CHARS_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class SetInstancesRunning:
    """Whether the workers run instances of `group`. One that is stopped finishes what it has begun, and commits."""

    group: Annotated[str, forms.CharField(label=gettext_lazy("Group"), max_length=GROUP_CHARS_MAX)]
    running: Annotated[str, forms.ChoiceField(label=gettext_lazy("Instances run"), choices=YES_NO)]


def preview(cluster: Cluster, arguments: SetInstancesRunning) -> Preview[HostedGroup]:
    """Returns whether they run, before and after. Raises ActionRefused for a group that is not hosted."""
    row = required_group(cluster.namesrv, arguments.group)
    change = Change("", {"instances_run": yes_no(not row.is_stopped)}, {"instances_run": arguments.running})
    warnings = []
    if arguments.running == "no":
        warnings.append(_("With no instance of this project its messages wait, unless other members consume them."))
    return Preview((change,), plan=row, warnings=tuple(warnings))


def carry_out(
    _cluster: Cluster, arguments: SetInstancesRunning, preview: Preview[HostedGroup]
) -> Iterator[ItemOutcome]:
    """Writes it into the group's row, which supervision reads."""
    return write_row(preview, is_stopped=arguments.running == "no")


def undo(arguments: SetInstancesRunning, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the opposite."""
    return undo_of_switch(DECLARATION.name, arguments, "running", outcomes)


def adapt(form: forms.Form, cluster: Cluster, group: str) -> None:
    """Offers the opposite of what is."""
    row = hosted_group(cluster.namesrv, group)
    if row is not None:
        form.fields["running"].initial = yes_no(row.is_stopped)


DECLARATION: Action[SetInstancesRunning, HostedGroup] = Action(
    name="set_instances_running",
    title=gettext_lazy("Stop the instances, or start them again"),
    permission="mq_consumer.change_hostedgroup",
    arguments=SetInstancesRunning,
    subject="group",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt,
)
