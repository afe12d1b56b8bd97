"""What lag publishes: a Django signal, sent with one `event` within the transaction that wrote the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.dispatch import Signal

from mqadmin.clusters.models import Cluster, Group

# Figures or the verdict of groups changed as a page shows them. → GroupsMeasured
groups_measured = Signal()


@dataclass(frozen=True, slots=True)
class Turn:
    """A group that has another verdict than it had."""

    group: Group
    was: str


@dataclass(frozen=True, slots=True)
class GroupsMeasured:
    """`groups` have their new `revision`. `crossed`: those that went beyond their objective, or came back."""

    cluster: Cluster
    groups: Sequence[Group]
    turned: Sequence[Turn] = ()
    crossed: Sequence[Group] = ()
