"""What the selectors hand to pages: frozen values, each figure with the moment it was seen.

A figure's `value` None means "not known"; a page never draws it as 0. Moments are aware datetimes; a page takes ages
against its own `now`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Figure:
    """A number and when it was seen (None: never)."""

    value: float | None
    seen_at: datetime | None

    @property
    def is_known(self) -> bool:
        return self.value is not None


@dataclass(frozen=True, slots=True)
class LagPoint:
    """From `at` on the lag was this; None: not known."""

    at: datetime
    lag: int | None


class DrainKind(StrEnum):
    """When the lag will be gone at the present rates."""

    NOW = "now"
    IN = "in"
    NEVER = "never"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Drain:
    """`seconds` is set for IN alone."""

    kind: DrainKind
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Behind:
    """Since when the next message has been waiting. `method`: "store_time" is exact, "observed" means at least."""

    since: datetime | None
    method: str

    @property
    def is_at_least(self) -> bool:
        return self.method == "observed"


@dataclass(frozen=True, slots=True)
class ClusterHead:
    """What every page of a cluster says of it. `last_synced_at`: up to when its rows are true."""

    id: int
    name: str
    rocketmq_name: str
    kind: str
    state: str
    state_since: datetime
    last_error: str
    last_synced_at: datetime | None
    namesrv: str

    @property
    def is_followed(self) -> bool:
        """Facts come within a second; else by polling."""
        return self.kind == "ours"


@dataclass(frozen=True, slots=True)
class ClusterCard:
    head: ClusterHead
    broker_count: int
    answering_broker_count: int
    topic_count: int
    group_count: int
    attention_count: int
    lag: Figure
    in_per_s: Figure
    out_per_s: Figure
    history: tuple[LagPoint, ...]


@dataclass(frozen=True, slots=True)
class VerdictFacts:
    """`verdict`: stalled, stopped, slow, unknown, ok, quiet. `reason` is a sentence in the reader's language."""

    verdict: str
    since: datetime | None
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class AttentionItem:
    cluster_name: str
    group_name: str
    verdict: VerdictFacts
    lag: Figure
    behind: Behind


@dataclass(frozen=True, slots=True)
class Overview:
    now: datetime
    clusters: tuple[ClusterCard, ...]
    attention: tuple[AttentionItem, ...]
    attention_count: int


@dataclass(frozen=True, slots=True)
class SchedulerFacts:
    """`driver` "": nobody drives. `late_ms` of the last delivery, None before the first."""

    driver: str
    since: datetime | None
    late_ms: int | None
    waiting_count: int | None


@dataclass(frozen=True, slots=True)
class BrokerRow:
    name: str
    broker_id: int
    address: str
    version: int | None
    last_error: str
    scheduler: SchedulerFacts | None
    seen_at: datetime | None

    @property
    def is_answering(self) -> bool:
        return self.seen_at is not None and not self.last_error


@dataclass(frozen=True, slots=True)
class ClusterPage:
    now: datetime
    card: ClusterCard
    brokers: tuple[BrokerRow, ...]
    attention: tuple[AttentionItem, ...]


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T_co]):
    """One page of a list that the database filtered, sorted and cut. `number` counts from 1."""

    now: datetime
    cluster: ClusterHead
    rows: tuple[T_co, ...]
    number: int
    page_count: int
    total_count: int
    sort: str
    is_descending: bool
    filter: str

    @property
    def has_previous(self) -> bool:
        return self.number > 1

    @property
    def has_next(self) -> bool:
        return self.number < self.page_count


@dataclass(frozen=True, slots=True)
class TopicRow:
    """`kind`: normal, retry, dead_letter, system. `perm`: 4 read, 2 write."""

    name: str
    kind: str
    read_queue_count: int | None
    write_queue_count: int | None
    perm: int | None
    message_count: Figure
    in_per_s: Figure
    last_stored_at: datetime | None
    group_count: int
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class TopicQueueRow:
    broker_name: str
    queue_id: int
    min_offset: int
    max_offset: int
    last_stored_at: datetime | None
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class GroupRow:
    name: str
    is_system: bool
    verdict: VerdictFacts
    lag: Figure
    unknown_queue_count: int | None
    behind: Behind
    in_per_s: Figure
    out_per_s: Figure
    drain: Drain
    member_count: Figure
    history: tuple[LagPoint, ...]
    revision: int
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class TopicReader:
    """A group that reads a topic. `lag` and `behind` are those of this topic's queues; `group` has its whole lag."""

    group: GroupRow
    lag: Figure
    behind: Behind


@dataclass(frozen=True, slots=True)
class TopicPage:
    now: datetime
    cluster: ClusterHead
    topic: TopicRow
    queues: tuple[TopicQueueRow, ...]
    readers: tuple[TopicReader, ...]


@dataclass(frozen=True, slots=True)
class QueueRow:
    """`owner`: client id, "" nobody pulls it, None not known. Offsets None: not known.

    `is_subscribed` False: the members do not subscribe to the topic any more, so its lag is not the group's.
    """

    topic_name: str
    broker_name: str
    queue_id: int
    committed_offset: int | None
    max_offset: int | None
    lag: int | None
    behind: Behind
    owner: str | None
    owner_since: datetime | None
    last_pull_at: datetime | None
    moved_at: datetime | None
    is_retry: bool
    is_subscribed: bool | None
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class MemberRow:
    """`queues` as far as they were seen to be pulled by it; `left_at` None: online."""

    client_id: str
    address: str
    language: str
    version: int | None
    version_name: str
    online_since: datetime | None
    first_seen_at: datetime
    last_heartbeat_at: datetime | None
    left_at: datetime | None
    queues: tuple[QueueRow, ...]
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class SubscriptionRow:
    """`client_id` "": the one table that the broker keeps for the whole group."""

    client_id: str
    topic_name: str
    expression: str
    expression_type: str
    sub_version: int
    first_seen_at: datetime
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """As the broker's configuration of the group says; None or "": not known."""

    message_model: str
    consume_type: str
    consume_from_where: str
    is_consume_enabled: bool | None
    retry_times_max: int | None


@dataclass(frozen=True, slots=True)
class GroupPage:
    """`departed`: members that left within the last day, the latest first."""

    now: datetime
    cluster: ClusterHead
    group: GroupRow
    settings: GroupSettings
    members: tuple[MemberRow, ...]
    departed: tuple[MemberRow, ...]
    queues: tuple[QueueRow, ...]
    subscriptions: tuple[SubscriptionRow, ...]
