"""What this subject publishes, within the transaction that wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.dispatch import Signal

from mqadmin.clusters.models import Cluster

# A conflict between members of groups began, changed or ended. → ConflictsChanged
conflicts_changed = Signal()


@dataclass(frozen=True, slots=True)
class ConflictsChanged:
    """`groups`: their names. The rows say which of them are in conflict now."""

    cluster: Cluster
    groups: Sequence[str]
