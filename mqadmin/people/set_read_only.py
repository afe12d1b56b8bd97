"""Makes a cluster read-only for this console: every action on it is refused until that is lifted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Change, InstallationAction, ItemOutcome, Preview, Undo
from mqadmin.actions.switches import undo_of_switch, yes_no
from mqadmin.clusters.models import Cluster
from mqadmin.people import access
from mqadmin.people.models import ReadOnlyCluster
from mqadmin.people.words import YES_NO


@dataclass(frozen=True, slots=True, kw_only=True)
class SetReadOnly:
    """Whether the cluster is read-only."""

    cluster: Annotated[str, forms.CharField(label=gettext_lazy("Cluster"), max_length=100)]
    read_only: Annotated[str, forms.ChoiceField(label=gettext_lazy("Read-only"), choices=YES_NO)]


def preview(arguments: SetReadOnly) -> Preview[Cluster]:
    """Returns the change. Raises ValidationError for an unknown cluster."""
    cluster = Cluster.objects.filter(name=arguments.cluster).first()
    if cluster is None:
        raise ValidationError({"cluster": _("There is no cluster of this name.")})
    change = Change("", {"read_only": yes_no(access.is_read_only(cluster))}, {"read_only": arguments.read_only})
    warnings = []
    if arguments.read_only == "yes":
        warnings.append(_("Nobody can change it here then, whatever their role; other tools still can."))
    return Preview((change,), cluster, tuple(warnings))


def carry_out(arguments: SetReadOnly, preview: Preview[Cluster]) -> Iterator[ItemOutcome]:
    """Writes it down."""
    (change,) = preview.changes
    if not change.is_change:
        yield change.unchanged()
        return
    if arguments.read_only == "yes":
        ReadOnlyCluster.objects.get_or_create(cluster=preview.plan)
    else:
        ReadOnlyCluster.objects.filter(cluster=preview.plan).delete()
    yield change.done()


def undo(arguments: SetReadOnly, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the opposite."""
    return undo_of_switch(DECLARATION.name, arguments, "read_only", outcomes)


def adapt(form: forms.Form, subject: str) -> None:
    """Offers the opposite of what is."""
    cluster = Cluster.objects.filter(name=subject).first() if subject else None
    if cluster is not None:
        form.fields["read_only"].initial = yes_no(not access.is_read_only(cluster))


DECLARATION: InstallationAction[SetReadOnly, Cluster] = InstallationAction(
    name="set_read_only",
    title=gettext_lazy("Make read-only, or lift it"),
    permission="mq_clusters.change_cluster",
    arguments=SetReadOnly,
    subject="cluster",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt,
)
