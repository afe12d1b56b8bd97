"""Changes a cluster's name servers and its note. Other name servers are asked what they are, as when it is added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import (
    ActionRefused,
    Change,
    InstallationAction,
    ItemOutcome,
    ItemState,
    Preview,
    Undo,
)
from mqadmin.cluster_settings import finding_out
from mqadmin.cluster_settings.fields import AddressesField, NoteField
from mqadmin.clusters.default_cluster import is_default_cluster
from mqadmin.clusters.models import CLUSTER_NAME_CHARS_MAX, Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCluster:
    """The cluster's name servers and note as they shall be; an empty note is none."""

    cluster: Annotated[str, forms.SlugField(label=gettext_lazy("Cluster"), max_length=CLUSTER_NAME_CHARS_MAX)]
    namesrv: Annotated[str, AddressesField()]
    note: Annotated[str, NoteField()] = ""


def preview(arguments: ChangeCluster) -> Preview[Cluster]:
    """Compares with the row, and asks other name servers what they are. Raises ActionRefused."""
    row = find_cluster(arguments.cluster)
    before = {"namesrv": row.namesrv, "note": row.note}
    after = {"namesrv": arguments.namesrv, "note": arguments.note}
    warnings: list[str] = []
    if before["namesrv"] != after["namesrv"]:
        if is_default_cluster(row.name):
            words = _("The name servers of %(name)s are those of the setting MQADMIN_NAMESRV: change them there.")
            raise ActionRefused(words % {"name": row.name})
        found, reason = finding_out.probe(arguments.namesrv)
        after |= finding_out.found_values(found)
        warnings = [
            *finding_out.warnings(found, reason),
            _("What is known of its brokers is found out anew; topics and groups that are not there go."),
        ]
    return Preview((Change("", before, after),), row, tuple(warnings), rests_on=before)


def carry_out(arguments: ChangeCluster, preview: Preview[Cluster]) -> Iterator[ItemOutcome]:
    """Writes the row; the follower goes to the new addresses within seconds."""
    (change,) = preview.changes
    if not change.is_change:
        yield change.unchanged()
        return
    with transaction.atomic():
        row = Cluster.objects.select_for_update().filter(pk=preview.plan.pk).first()
        if row is None:
            yield change.failed(_("The cluster was removed in between."))
            return
        row.note = arguments.note
        row.save(update_fields=["note"])
        if row.namesrv != arguments.namesrv:
            row.point_at(arguments.namesrv)
    yield change.done()


def undo(arguments: ChangeCluster, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the same action with what was before."""
    (outcome,) = outcomes
    if outcome.state != ItemState.DONE or outcome.before is None:
        return None
    return Undo(DECLARATION.name, {"cluster": arguments.cluster, **outcome.before})


def adapt(form: forms.Form, cluster: str) -> None:
    """Shows the present values."""
    row = Cluster.objects.filter(name=cluster).first()
    if row is not None:
        form.fields["namesrv"].initial, form.fields["note"].initial = row.namesrv, row.note


def find_cluster(name: str) -> Cluster:
    """Returns the cluster's row. Raises ActionRefused for a name that is none's."""
    row = Cluster.objects.filter(name=name).first()
    if row is None:
        raise ActionRefused(_("There is no cluster %(name)s (any more).") % {"name": name})
    return row


DECLARATION: InstallationAction[ChangeCluster, Cluster] = InstallationAction(
    name="change_cluster",
    title=gettext_lazy("Change the cluster"),
    permission="mq_clusters.change_cluster",
    arguments=ChangeCluster,
    subject="cluster",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt,
)
