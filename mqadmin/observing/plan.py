"""Observations and rows to changes of rows. Pure: nothing here asks a database, a broker or the clock.

Rows go in as they are stored; the functions set their fields and return those that changed, new ones among them. The
synchroniser reads, calls, writes. Unchanged rows are not returned, so a quiet cluster costs no writes.

`broker` names the one whose word an observation is, "" where it is that of the whole cluster. A topic, group, member or
subscription that several brokers know is one row: it keeps who knows it (`of_brokers`, `known_by`), and ends when the
last of them says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Model

from mqadmin.clusters import waiting
from mqadmin.clusters.models import (
    Group,
    Member,
    Subscription,
    Topic,
    TopicKind,
    TopicQueue,
    WaitingMethod,
)
from mqadmin.observing.observation import (
    CommitObserved,
    GroupObserved,
    MemberObserved,
    Owner,
    QueueObserved,
    SubscriptionKey,
    TopicObserved,
)
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.names import is_dlq_topic, is_retry_topic, is_system_group, is_topic_of_broker


def topic_kind(name: str, own_names: frozenset[str] = frozenset()) -> TopicKind:
    """Returns the kind of a topic.

    `own_names`: those of the cluster and its brokers, under which RocketMQ keeps topics (and replies) too.
    """
    if is_retry_topic(name):
        return TopicKind.RETRY
    if is_dlq_topic(name):
        return TopicKind.DEAD_LETTER
    if is_topic_of_broker(name, own_names):
        return TopicKind.SYSTEM
    return TopicKind.NORMAL


def topics(
    cluster_id: int,
    rows: Mapping[str, Topic],
    observed: Iterable[TopicObserved],
    at: datetime,
    own_names: frozenset[str],
    broker: str = "",
) -> list[Topic]:
    changed = []
    for topic in observed:
        row = rows.get(topic.name) or Topic(cluster_id=cluster_id, name=topic.name)
        word = [topic.read_queue_count, topic.write_queue_count, topic.perm]
        of_brokers = {**row.of_brokers, broker: word} if broker else {}
        counts = _topic_sums(list(of_brokers.values()) or [word])
        if _set(row, kind=topic_kind(topic.name, own_names), of_brokers=of_brokers, **counts):
            row.seen_at = at
            changed.append(row)
    return changed


def _forget(row: Topic | Group, broker: str, at: datetime, summed: Callable[[list[Any]], dict[str, Any]]) -> bool:
    rest = {name: word for name, word in row.of_brokers.items() if name != broker}
    if not rest:
        return False
    if _set(row, of_brokers=rest, **summed(list(rest.values()))):
        row.seen_at = at
    return True


def forget_topic(row: Topic, broker: str, at: datetime) -> bool:
    """Takes back what the broker said of the topic; returns whether another broker still has it."""
    return _forget(row, broker, at, _topic_sums)


def _topic_sums(words: Sequence[Sequence[int]]) -> dict[str, int]:
    """Returns the sums of [read queues, write queues, perm] of brokers; `perm` is what any of them allows."""
    perm = 0
    for word in words:
        perm |= word[2]
    return {
        "read_queue_count": sum(word[0] for word in words),
        "write_queue_count": sum(word[1] for word in words),
        "perm": perm,
    }


class QueueIdentity(NamedTuple):
    topic_id: int
    broker_name: str
    queue_id: int


def topic_queues(
    topic_ids: Mapping[str, int],
    rows: Mapping[QueueIdentity, TopicQueue],
    observed: Iterable[QueueObserved],
    at: datetime,
) -> list[TopicQueue]:
    """Returns the changed rows. A queue of a topic without a row is left out: the topic was just deleted."""
    changed = []
    for queue in observed:
        topic_id = topic_ids.get(queue.queue.topic)
        if topic_id is None:
            continue
        identity = QueueIdentity(topic_id, queue.queue.broker_name, queue.queue.queue_id)
        row = rows.get(identity) or TopicQueue(**identity._asdict())
        if _set(
            row,
            min_offset=queue.min_offset,
            max_offset=queue.max_offset,
            last_stored_at=queue.last_stored_at,
            max_history=waiting.noted(row.max_history, int(at.timestamp()), queue.max_offset),
        ):
            row.seen_at = at
            changed.append(row)
    return changed


def unwritten_queues(
    topic_ids: Mapping[str, int],
    known: Container[QueueIdentity],
    observed: Iterable[TopicObserved],
    broker: str,
    at: datetime,
) -> list[TopicQueue]:
    """Returns rows for queues that were not reported: our broker reports those that were ever written to."""
    identities = (
        QueueIdentity(topic_ids[topic.name], broker, queue_id)
        for topic in observed
        if topic.name in topic_ids and topic_kind(topic.name) != TopicKind.SYSTEM
        for queue_id in range(max(topic.read_queue_count, topic.write_queue_count))
    )
    return [
        TopicQueue(**identity._asdict(), min_offset=0, max_offset=0, seen_at=at)
        for identity in identities
        if identity not in known
    ]


class GroupWord(NamedTuple):
    """What a group's row says of its settings."""

    is_consume_enabled: bool | None
    retry_times_max: int | None
    of_brokers: Mapping[str, Sequence[Any]]


def is_settled(group: GroupObserved, word: GroupWord, broker: str = "") -> bool:
    """Tells whether the row says all that the observation says; that of members is always news: when they were seen."""
    if group.members is not None:
        return False
    if group.settings is None:
        return True
    told = [group.settings.is_consume_enabled, group.settings.retry_times_max]
    if broker:
        return list(word.of_brokers.get(broker, ())) == told
    return not word.of_brokers and [word.is_consume_enabled, word.retry_times_max] == told


def groups(
    cluster_id: int,
    rows: Mapping[str, Group],
    observed: Iterable[GroupObserved],
    at: datetime,
    broker: str = "",
    elsewhere: Mapping[str, Collection[str]] | None = None,
) -> list[Group]:
    """Returns the changed rows. `elsewhere`: group → the client ids that other brokers know to be online."""
    changed = []
    for group in observed:
        row = rows.get(group.name) or Group(cluster_id=cluster_id, name=group.name)
        values: dict[str, Any] = {"is_system": is_system_group(group.name)}
        if group.settings is not None:
            word = [group.settings.is_consume_enabled, group.settings.retry_times_max]
            of_brokers = {**row.of_brokers, broker: word} if broker else {}
            values |= {"of_brokers": of_brokers, **_group_settings(list(of_brokers.values()) or [word])}
        if group.members is not None:
            online = {member.client_id for member in group.members} | set((elsewhere or {}).get(group.name, ()))
            values["member_count"] = len(online)
            values["members_seen_at"] = at
        if group.consumption is not None and group.members:
            # Without members online the last known way of consuming stays: the group has not changed it.
            values["message_model"] = group.consumption.message_model
            values["consume_type"] = group.consumption.consume_type
            values["consume_from_where"] = group.consumption.consume_from_where
        if _set(row, **values):
            row.seen_at = at
            changed.append(row)
    return changed


def forget_group(row: Group, broker: str, at: datetime) -> bool:
    """Takes back what the broker said of the group; returns whether another broker still has it."""
    return _forget(row, broker, at, _group_settings)


def _group_settings(words: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Returns what [is_consume_enabled, retry_times_max] of brokers come to: one that forbids consuming shows."""
    return {
        "is_consume_enabled": all(word[0] for word in words),
        "retry_times_max": max(word[1] for word in words),
    }


@dataclass(frozen=True, slots=True)
class MemberChanges:
    """`changed` holds all rows to write; `joined` and `gone` are the client ids among them that came and went."""

    changed: list[Member] = field(default_factory=list)
    joined: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


def members(
    group_id: int, rows: Mapping[str, Member], observed: Iterable[MemberObserved], at: datetime, broker: str = ""
) -> MemberChanges:
    changes = MemberChanges()
    present = {member.client_id: member for member in observed}
    for client_id, member in present.items():
        row = rows.get(client_id) or Member(group_id=group_id, client_id=client_id, first_seen_at=at)
        if row.pk is None or row.left_at is not None:
            changes.joined.append(client_id)
        if _set(
            row,
            address=member.address,
            language=member.language,
            version=member.version,
            online_since=member.online_since,
            last_heartbeat_at=member.last_heartbeat_at,
            differences=[dict(difference) for difference in member.differences],
            known_by=_with(row.known_by if row.left_at is None else (), broker),
            left_at=None,
        ):
            row.seen_at = at
            changes.changed.append(row)
    for client_id, row in rows.items():
        if client_id in present or row.left_at is not None:
            continue
        others = _without(row.known_by, broker)
        if others == row.known_by and others:
            continue
        row.known_by = others
        if not others:
            row.left_at = at
            changes.gone.append(client_id)
        changes.changed.append(row)
    return changes


@dataclass(frozen=True, slots=True)
class SubscriptionChanges:
    """`ended` are rows of the past now; `begun` are new; `renewed` are in force as before."""

    begun: list[Subscription] = field(default_factory=list)
    renewed: list[Subscription] = field(default_factory=list)
    ended: list[Subscription] = field(default_factory=list)


def subscriptions(
    group_id: int,
    rows: Mapping[SubscriptionKey, Subscription],
    observed: Mapping[SubscriptionKey, int],
    at: datetime,
    broker: str = "",
) -> SubscriptionChanges:
    """Returns the changed rows; `rows` are those in force. A member that left ends its own rows by not being seen."""
    changes = SubscriptionChanges()
    for key, version in observed.items():
        row = rows.get(key)
        if row is None:
            begun = Subscription(
                group_id=group_id,
                client_id=key.client_id,
                topic_name=key.topic,
                expression=key.expression,
                expression_type=key.expression_type,
                sub_version=version,
                known_by=_with((), broker),
                first_seen_at=at,
                seen_at=at,
            )
            changes.begun.append(begun)
        elif _set(row, sub_version=version, known_by=_with(row.known_by, broker)):
            row.seen_at = at
            changes.renewed.append(row)
    for key, row in rows.items():
        if key in observed:
            continue
        others = _without(row.known_by, broker)
        if not others:
            row.ended_at = at
            changes.ended.append(row)
        elif _set(row, known_by=others):
            changes.renewed.append(row)
    return changes


def _with(names: Iterable[str], broker: str) -> list[str]:
    return sorted({*names, broker}) if broker else []


def _without(names: Iterable[str], broker: str) -> list[str]:
    """Returns who is left; nobody where the observation is the whole cluster's."""
    return [name for name in names if name != broker] if broker else []


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """All that bears on one group's rows of progress. None: not known; of `owners`: not reported this time.

    `broker`: whose queues `owners` is about; "" where it is about all.
    """

    group_id: int
    committed: Mapping[MessageQueue, CommitObserved] = field(default_factory=dict)
    subscribed_topics: frozenset[str] | None = None
    owners: Mapping[MessageQueue, Owner] | None = None
    broker: str = ""


class OffsetRow(NamedTuple):
    """A group's row of progress on one queue: what an observation may find changed. `pk` None: there is none yet."""

    topic_name: str
    broker_name: str
    queue_id: int
    pk: int | None
    committed_offset: int | None = None
    behind_since: datetime | None = None
    behind_method: str = WaitingMethod.NONE.value
    is_subscribed: bool | None = None
    owner: str | None = None
    owner_since: datetime | None = None
    last_pull_at: datetime | None = None


class OffsetChange(NamedTuple):
    """New values of a row, by the field's name."""

    row: OffsetRow
    values: dict[str, Any]


def queue_offsets(
    progress: GroupProgress, rows: Collection[OffsetRow], queues: Iterable[MessageQueue], at: datetime
) -> list[OffsetChange]:
    """Returns what changes, new rows for what is committed or pulled and for each of `queues` that is subscribed.

    How far a queue reaches is none of their business: a topic that grows changes no row of its readers.
    """
    changes = [OffsetChange(row, values) for row in rows if (values := _advance(row, progress))]
    known = {row[:3] for row in rows}
    wanted = {queue for queue in (*progress.committed, *(progress.owners or ())) if queue not in known}
    if progress.subscribed_topics:
        wanted |= {queue for queue in queues if queue.topic in progress.subscribed_topics and queue not in known}
    for queue in wanted:
        row = OffsetRow(queue.topic, queue.broker_name, queue.queue_id, None)
        changes.append(OffsetChange(row, _advance(row, progress)))
    for row, values in changes:
        if "committed_offset" in values:
            values["committed_since"] = at
            if row.committed_offset is not None:
                values["moved_at"] = at
        values["seen_at"] = at
    return changes


def _advance(row: OffsetRow, progress: GroupProgress) -> dict[str, Any]:
    """Returns the values of the observation that the row does not have."""
    queue: Any = row[:3]  # a queue is equal to its three parts
    values: dict[str, Any] = {}
    committed = progress.committed.get(queue)
    if committed is not None:
        is_moved = committed.committed_offset != row.committed_offset
        if is_moved:
            values["committed_offset"] = committed.committed_offset
        if is_moved or committed.behind_since is not None:
            is_told = committed.behind_since is not None
            method = WaitingMethod.STORE_TIME if is_told else WaitingMethod.NONE
            if (committed.behind_since, method) != (row.behind_since, row.behind_method):
                values["behind_since"], values["behind_method"] = committed.behind_since, method
    if progress.subscribed_topics is not None:
        is_subscribed = row.topic_name in progress.subscribed_topics
        if is_subscribed != row.is_subscribed:
            values["is_subscribed"] = is_subscribed
    if progress.owners is not None and progress.broker in ("", row.broker_name):
        owner = progress.owners.get(queue)
        told = (owner.client_id, owner.since, owner.last_pull_at) if owner else ("", None, None)
        if told != (row.owner, row.owner_since, row.last_pull_at):
            values["owner"], values["owner_since"], values["last_pull_at"] = told
    return values


def _set(row: Model, **values: Any) -> bool:
    """Sets fields of the row; returns whether it is new or any of them had another value."""
    is_changed = row.pk is None
    for name, value in values.items():
        if getattr(row, name) != value:
            setattr(row, name, value)
            is_changed = True
    return is_changed
