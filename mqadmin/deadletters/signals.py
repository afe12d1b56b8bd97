"""What the index publishes, once per queue and step, within the transaction that wrote it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from django.dispatch import Signal

from mqadmin.clusters.models import Cluster

# Dead letters were indexed. → DeadLettersIndexed
dead_letters_indexed = Signal()


@dataclass(frozen=True, slots=True)
class DeadLettersIndexed:
    """`failure_ids`: the failures that they belong to. `count`: how many are new; 0 where known
    ones moved from failure to failure, since a reason came late.

    `of_replays`: those that a replay had sent: (its token, its entry) → the dead letter.
    """

    cluster: Cluster
    group_name: str
    failure_ids: Collection[int]
    count: int
    of_replays: Mapping[tuple[str, int], int] = field(default_factory=dict)
