"""What brokers reported, in one form whether watched or polled. None means "not asked", an empty tuple "none".

Moments are aware datetimes: `at` of an `Observation` by our clock, others by that of the broker that reported them.
`watch_observation.py` makes these of the answer to a watch, `polling.py` of what Apache answers; `plan.py` turns them
into changes of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from remoting.wire.bodies.message_queue import MessageQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerObserved:
    name: str
    broker_id: int
    address: str
    version: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class TopicObserved:
    """Counts summed over the brokers that have it; `perm` of all of them together."""

    name: str
    read_queue_count: int
    write_queue_count: int
    perm: int


@dataclass(frozen=True, slots=True)
class QueueObserved:
    queue: MessageQueue
    min_offset: int
    max_offset: int
    last_stored_at: datetime | None


@dataclass(frozen=True, slots=True)
class CommitObserved:
    """`behind_since`: store time of the message at `committed_offset`; None at the end, or not reported."""

    group: str
    queue: MessageQueue
    committed_offset: int
    behind_since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberObserved:
    client_id: str
    address: str
    language: str
    version: int | None
    online_since: datetime | None = None
    last_heartbeat_at: datetime | None = None
    # By its own heartbeats; "" where these are not told.
    message_model: str = ""
    consume_from_where: str = ""
    # As `Member.differences` keeps them.
    differences: Sequence[Mapping[str, Any]] = ()


class SubscriptionKey(NamedTuple):
    """`client_id` "": the one table that the broker keeps for the whole group."""

    client_id: str
    topic: str
    expression: str
    expression_type: str


@dataclass(frozen=True, slots=True)
class Owner:
    """Who was seen to pull a queue last."""

    client_id: str
    since: datetime
    last_pull_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupObserved:
    """`settings` None: another request than the one for the configuration. `subscriptions`: key → version."""

    name: str
    settings: GroupSettingsObserved | None = None
    consumption: ConsumptionObserved | None = None
    members: tuple[MemberObserved, ...] | None = None
    subscriptions: Mapping[SubscriptionKey, int] | None = None
    owners: Mapping[MessageQueue, Owner] | None = None


@dataclass(frozen=True, slots=True)
class GroupSettingsObserved:
    is_consume_enabled: bool
    retry_times_max: int


@dataclass(frozen=True, slots=True)
class ConsumptionObserved:
    """How the members consume, by their heartbeats; "" where that is not known."""

    message_model: str
    consume_type: str
    consume_from_where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """`of_broker`: whose word this is, and of what it has alone; "" where it is about the whole cluster.

    `is_complete`: what is not named here does not exist any more, there. `digests`: group → digest of all that is
    committed of it (`Group.committed_digest`), where that is known.
    """

    at: datetime
    is_complete: bool
    of_broker: str = ""
    topics: tuple[TopicObserved, ...] = ()
    gone_topics: tuple[str, ...] = ()
    queues: tuple[QueueObserved, ...] = ()
    groups: tuple[GroupObserved, ...] = ()
    gone_groups: tuple[str, ...] = ()
    committed: tuple[CommitObserved, ...] = ()
    digests: Mapping[str, int] = field(default_factory=dict)
    events: tuple[ObservedEvent, ...] = ()

    @property
    def size(self) -> int:
        """Returns how many topics, queues, groups, commits and events it names."""
        return sum(map(len, (self.topics, self.queues, self.groups, self.committed, self.events)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedEvent:
    """An event of the watch that concerns a group's members: `kind` as in `remoting.wire.bodies.watch`."""

    key: str
    at: datetime
    kind: str
    group: str
    client_id: str = ""
    queue: MessageQueue | None = None
    from_client: str = ""
    to_client: str = ""
