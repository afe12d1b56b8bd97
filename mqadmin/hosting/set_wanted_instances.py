"""Sets how many instances of a hosted group the workers run; they follow within seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from consumer.models import HostedGroup
from mqadmin.actions.arguments import CountField
from mqadmin.actions.declaration import Action, Change, ItemOutcome, ItemState, Preview, Undo
from mqadmin.clusters.models import Cluster
from mqadmin.hosting.hosted import hosted_group, required_group, write_row
from remoting.wire.limits import GROUP_CHARS_MAX

_NO_WHOLE_NUMBER = gettext_lazy("The number of instances must be a whole number.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetWantedInstances:
    """How many instances of `group` the workers run; MQADMIN_INSTANCES is the most."""

    group: Annotated[str, forms.CharField(label=gettext_lazy("Group"), max_length=GROUP_CHARS_MAX)]
    wanted: Annotated[
        int,
        CountField(
            label=gettext_lazy("Instances wanted"),
            min_value=0,
            error_messages={"invalid": _NO_WHOLE_NUMBER, "required": _NO_WHOLE_NUMBER},
        ),
    ]


def preview(cluster: Cluster, arguments: SetWantedInstances) -> Preview[HostedGroup]:
    """Returns the number before and after. Raises ActionRefused for a group that is not hosted, ValidationError."""
    row = required_group(cluster.namesrv, arguments.group)
    if arguments.wanted > settings.MQADMIN_INSTANCES:
        words = _("Between 0 and %(most)d instances can run here: MQADMIN_INSTANCES sets the most.")
        raise ValidationError({"wanted": words % {"most": settings.MQADMIN_INSTANCES}})
    change = Change("", wanted_values(row.wanted_instances), wanted_values(arguments.wanted))
    warnings = []
    if row.is_stopped:
        warnings.append(_("Its instances are stopped: the number holds from when they are started again."))
    if arguments.wanted == 0:
        warnings.append(_("With no instance of this project its messages wait, unless other members consume them."))
    return Preview((change,), plan=row, warnings=tuple(warnings))


def carry_out(_cluster: Cluster, arguments: SetWantedInstances, preview: Preview[HostedGroup]) -> Iterator[ItemOutcome]:
    """Writes the number into the group's row, which supervision reads."""
    return write_row(preview, wanted_instances=arguments.wanted)


def undo(arguments: SetWantedInstances, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the same action with the number that was wanted before."""
    (outcome,) = outcomes
    if outcome.state != ItemState.DONE or outcome.before is None:
        return None
    return Undo(DECLARATION.name, {"group": arguments.group, "wanted": outcome.before["wanted_instances"]})


def wanted_values(wanted: int) -> dict[str, int]:
    """Returns the values that a preview compares and the audit keeps."""
    return {"wanted_instances": wanted}


def adapt(form: forms.Form, cluster: Cluster, group: str) -> None:
    """Sets the present number and the largest one in the form."""
    row = hosted_group(cluster.namesrv, group)
    form.fields["wanted"].initial = row.wanted_instances if row is not None else None
    form.fields["wanted"].widget.attrs["max"] = settings.MQADMIN_INSTANCES


DECLARATION: Action[SetWantedInstances, HostedGroup] = Action(
    name="set_wanted_instances",
    title=gettext_lazy("Set the number of instances"),
    permission="mq_consumer.change_hostedgroup",
    arguments=SetWantedInstances,
    subject="group",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt,
)
