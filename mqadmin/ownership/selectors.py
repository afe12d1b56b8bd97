"""What lists and pages read of owners: whose topics and groups are, and which of them somebody owns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.db.models import QuerySet

from mqadmin.clusters.models import Cluster
from mqadmin.ownership.models import Described, Ownership

# More than a person looks through; others are typed.
OWNERS_MAX = 200


def texts_by_name(cluster: Cluster, kind: Described, names: Collection[str]) -> Mapping[str, Ownership]:
    """Returns what was said of topics or groups, by name; who is not in it has no owner. One query."""
    return {row.name: row for row in Ownership.objects.filter(cluster=cluster, kind=kind, name__in=names)}


def owners(cluster: Cluster, kind: Described) -> list[str]:
    """Returns the first OWNERS_MAX owners of topics or groups, by name."""
    found = Ownership.objects.filter(cluster=cluster, kind=kind).exclude(owner="").order_by("owner")
    return list(found.values_list("owner", flat=True).distinct()[:OWNERS_MAX])


def names_of_owner(cluster: Cluster, kind: Described, owner: str) -> QuerySet[Ownership, Any]:
    """Returns the names of the topics or groups whose owner is exactly this, as a query for `name__in`."""
    return Ownership.objects.filter(cluster=cluster, kind=kind, owner=owner).values("name")
