"""Adds a cluster to those that this installation follows, by the addresses of its name servers.

The preview is the test: it asks every name server and the brokers that they name what they are. A cluster that nobody
answers for can be added all the same; it is followed as soon as somebody does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Change, InstallationAction, ItemOutcome, ItemState, Preview, Undo
from mqadmin.cluster_settings import finding_out, remove_cluster
from mqadmin.cluster_settings.fields import AddressesField, NoteField
from mqadmin.clusters.models import CLUSTER_NAME_CHARS_MAX, Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class AddCluster:
    """The cluster behind `namesrv` is followed and shown as `cluster`."""

    cluster: Annotated[
        str,
        forms.SlugField(
            label=gettext_lazy("Name"),
            help_text=gettext_lazy("Letters, digits, - and _. It stands in the addresses of pages, and stays."),
            max_length=CLUSTER_NAME_CHARS_MAX,
            # Its files in the history have its name, and Spark passes over files whose name begins with "_".
            validators=[RegexValidator(r"^[^_]")],
        ),
    ]
    namesrv: Annotated[str, AddressesField()]
    note: Annotated[str, NoteField()] = ""


def preview(arguments: AddCluster) -> Preview[None]:
    """Asks name servers and brokers what they are. Raises ValidationError for a name that is taken."""
    if Cluster.objects.filter(name=arguments.cluster).exists():
        raise ValidationError({"cluster": _("A cluster of this name is there already.")})
    found, reason = finding_out.probe(arguments.namesrv)
    after = {"namesrv": arguments.namesrv, "note": arguments.note, **finding_out.found_values(found)}
    warnings = [*_twins(arguments.namesrv), *finding_out.warnings(found, reason)]
    return Preview((Change("", {}, after),), None, tuple(warnings), rests_on={})


def carry_out(arguments: AddCluster, preview: Preview[None]) -> Iterator[ItemOutcome]:
    """Writes the row, which the follower finds within seconds."""
    (change,) = preview.changes
    try:
        with transaction.atomic():
            Cluster.objects.create(name=arguments.cluster, namesrv=arguments.namesrv, note=arguments.note)
    except IntegrityError:
        yield change.failed(_("Somebody added a cluster of this name in between."))
        return
    yield change.done()


def undo(arguments: AddCluster, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the removal."""
    if any(one.state != ItemState.DONE for one in outcomes):
        return None
    return Undo(remove_cluster.DECLARATION.name, {"cluster": arguments.cluster})


def _twins(namesrv: str) -> Iterator[str]:
    for name in Cluster.objects.filter(namesrv=namesrv).order_by("name").values_list("name", flat=True):
        yield _("%(name)s is behind the same name servers: its brokers would be asked twice.") % {"name": name}


DECLARATION: InstallationAction[AddCluster, None] = InstallationAction(
    name="add_cluster",
    title=gettext_lazy("Add a cluster"),
    permission="mq_clusters.add_cluster",
    arguments=AddCluster,
    subject="cluster",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
)
