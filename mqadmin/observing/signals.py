"""What observing publishes: Django signals, each sent with one `event`, a value of the type named beside it.

Sent after the rows are written, within the same transaction, so that a receiver reads what was applied and its own
writes commit or fail with it. Receivers connect in their app's `ready()`; observing imports none of them. A receiver
returns how many rows it wrote: the follower paces itself by that (`following.py`).

    from mqadmin.observing.signals import GroupsChanged, groups_changed

    @receiver(groups_changed)
    def note_members(event: GroupsChanged, **_: object) -> int: ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.dispatch import Signal

from mqadmin.clusters.models import Cluster
from mqadmin.observing.observation import ObservedEvent
from remoting.wire.bodies.message_queue import MessageQueue

# Topics were made, changed or deleted, or their queues reached further. → TopicsChanged
topics_changed = Signal()
# Members, subscriptions, settings or owners of queues changed, or a topic that they read is gone. → GroupsChanged
groups_changed = Signal()
# Groups committed offsets. → GroupsCommitted
groups_committed = Signal()
# Members joined, left, changed their subscription, or queues moved. → RebalanceObserved
rebalance_observed = Signal()
# Members said what they hold. → MembersTold
members_told = Signal()
# A cluster answers, answers in part, or does not. → ReachabilityChanged
reachability_changed = Signal()
# A cluster is observed again after a silence. → ObservationResumed
observation_resumed = Signal()
# Time passed; sent every few seconds for each cluster that is observed. → Ticked
ticked = Signal()


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """`is_watched`: the rows are true up to `at`; else each up to its own `seen_at`."""

    cluster: Cluster
    at: datetime
    is_watched: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsChanged(Applied):
    """`topic_ids`: of rows that exist. `grown`: names of topics whose readers may be further behind now.

    `seen_again`: names of topics that were sampled, and have not grown.
    `named_group_ids`: groups that other events of the same observation name.
    """

    topic_ids: Sequence[int]
    grown: Sequence[str]
    seen_again: Sequence[str] = ()
    named_group_ids: AbstractSet[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsChanged(Applied):
    group_ids: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsCommitted(Applied):
    group_ids: Sequence[int]


@dataclass(frozen=True, slots=True)
class MembershipChange:
    """What the rows of one group say. `subscriptions`: client id → [{"topic", "before", "after"}].

    `since`: of a sampled group, when it was seen before; the change came after that.
    """

    group_id: int
    member_count: int | None = None
    since: datetime | None = None
    subscriptions: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    joined: Sequence[str] = ()
    gone: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceObserved(Applied):
    """`changes`: group name → what changed in its rows. `events`: the broker's own, oldest first.

    `is_sampled`: the rows were compared with those of an earlier observation, and why a member left is not known.
    """

    changes: Mapping[str, MembershipChange]
    events: Sequence[ObservedEvent] = ()
    is_sampled: bool


@dataclass(frozen=True, slots=True)
class ReachabilityChanged:
    cluster: Cluster


@dataclass(frozen=True, slots=True)
class ObservationResumed:
    """Nothing is known of what happened between `since` and now."""

    cluster: Cluster
    since: datetime


@dataclass(frozen=True, slots=True)
class Ticked:
    cluster: Cluster
    now: datetime
    is_watched: bool


@dataclass(frozen=True, slots=True)
class QueueMove:
    """A queue that a member holds, and another one did (`from_client`), or the other way round; "" for nobody known."""

    queue: MessageQueue
    from_client: str
    to_client: str


@dataclass(frozen=True, slots=True)
class GroupTold:
    """What members of a group said: who holds what now and held it not when they were asked before, at `since`."""

    group_id: int
    moves: Sequence[QueueMove] = ()
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class MembersTold:
    """Their answers are written. `at`: when they were asked."""

    cluster: Cluster
    at: datetime
    groups: Sequence[GroupTold]


Event = (
    TopicsChanged
    | GroupsChanged
    | GroupsCommitted
    | RebalanceObserved
    | ReachabilityChanged
    | ObservationResumed
    | Ticked
    | MembersTold
)


def publish(signal: Signal, event: Event) -> int:
    """Calls all receivers of the signal; returns how many rows they wrote."""
    answers: Sequence[tuple[object, Any]] = signal.send(sender=Cluster, event=event)
    return sum(count or 0 for _, count in answers)
