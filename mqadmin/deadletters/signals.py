"""What the index publishes, within the transaction that wrote it: once per queue and step, or look for late reasons."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from django.dispatch import Signal

from mqadmin.clusters.models import Cluster

# Dead letters were indexed. → DeadLettersIndexed
dead_letters_indexed = Signal()
# The reason of dead letters that are indexed already came: they belong to other failures now. → ReasonsCame
reasons_came = Signal()


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


@dataclass(frozen=True, slots=True)
class LateReason:
    """Why a dead letter died, and the identities of the failures that it was of and is of."""

    dead_letter_id: int
    identity_before: str
    identity: str
    failure_class: str
    failure_text: str


@dataclass(frozen=True, slots=True)
class ReasonsCame:
    """`renamed`: failures that are the same ones under another identity, by the one that they had."""

    cluster: Cluster
    group_name: str
    reasons: Collection[LateReason]
    renamed: Mapping[str, str] = field(default_factory=dict)
