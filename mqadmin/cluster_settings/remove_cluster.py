"""Removes a cluster from those that this installation follows, with all that is known of it here.

Nothing changes on its brokers. Its audit stays. The follower notices within seconds, and ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import ActionRefused, Change, InstallationAction, ItemOutcome, Preview
from mqadmin.clusters.default_cluster import is_default_cluster
from mqadmin.clusters.models import CLUSTER_NAME_CHARS_MAX, Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveCluster:
    """The cluster that is to be followed no longer."""

    cluster: Annotated[str, forms.SlugField(label=gettext_lazy("Cluster"), max_length=CLUSTER_NAME_CHARS_MAX)]


def preview(arguments: RemoveCluster) -> Preview[Cluster]:
    """Counts what is known of it here. Raises ActionRefused."""
    row = Cluster.objects.filter(name=arguments.cluster).first()
    if row is None:
        raise ActionRefused(_("There is no cluster %(name)s (any more).") % {"name": arguments.cluster})
    if is_default_cluster(row.name):
        words = _("%(name)s is the cluster of the setting MQADMIN_NAMESRV, and would come back: change it there.")
        raise ActionRefused(words % {"name": row.name})
    before = {"namesrv": row.namesrv, "note": row.note}
    counts = {"topic_count": row.topics.count(), "group_count": row.groups.count()}
    warnings = (
        _("Topics, groups, rebalances and the history of lag that are known of it here are deleted."),
        _("Its brokers go on as they are; added again, it is found out anew."),
    )
    return Preview((Change("", before | counts, {}),), row, warnings, rests_on=before)


def carry_out(_arguments: RemoveCluster, preview: Preview[Cluster]) -> Iterator[ItemOutcome]:
    """Deletes the row and all that belongs to it, at once."""
    (change,) = preview.changes
    with transaction.atomic():
        Cluster.objects.filter(pk=preview.plan.pk).delete()
    yield change.done()


DECLARATION: InstallationAction[RemoveCluster, Cluster] = InstallationAction(
    name="remove_cluster",
    title=gettext_lazy("Remove the cluster"),
    permission="mq_clusters.delete_cluster",
    arguments=RemoveCluster,
    subject="cluster",
    preview=preview,
    carry_out=carry_out,
    is_confirmed_by_name=True,
)
