"""Gives the rows of topics and groups what people said of them, and leaves those of other owners out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from mqadmin.clusters.models import Cluster, Group, Topic
from mqadmin.clusters.selectors.sorted_rows import SortedRows
from mqadmin.ownership.models import Described, Ownership
from mqadmin.ownership.selectors import names_of_owner, texts_by_name

M = TypeVar("M", Topic, Group)


def with_owners(rows: SortedRows[M], cluster: Cluster, kind: Described, owner: str) -> SortedRows[M]:
    """Returns the rows of one owner, "" for all, which know their ownership when they are read."""

    def complete(found: Sequence[M]) -> None:
        rows.complete(found)
        attach_owners(found, cluster, kind)

    wanted = rows.rows.filter(name__in=names_of_owner(cluster, kind, owner)) if owner else rows.rows
    return replace(rows, rows=wanted, complete=complete)


def attach_owners(rows: Sequence[Topic] | Sequence[Group], cluster: Cluster, kind: Described) -> None:
    """Sets `ownership` of each, an empty one where nobody said anything. One query."""
    texts = texts_by_name(cluster, kind, [row.name for row in rows])
    for row in rows:
        setattr(row, "ownership", texts.get(row.name) or Ownership())  # noqa: B010 - an attribute of lists alone
