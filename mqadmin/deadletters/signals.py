"""What the index publishes, once per queue and step, within the transaction that wrote it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.dispatch import Signal

from mqadmin.clusters.models import Cluster

# Dead letters were indexed. → DeadLettersIndexed
dead_letters_indexed = Signal()


@dataclass(frozen=True, slots=True)
class DeadLettersIndexed:
    """`failure_ids`: the failures that they belong to."""

    cluster: Cluster
    group_name: str
    failure_ids: Collection[int]
