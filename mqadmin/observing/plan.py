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
    Broker,
    Group,
    Member,
    Subscription,
    Topic,
    TopicKind,
    TopicQueue,
)
from mqadmin.observing.observation import (
    BrokerObserved,
    GroupObserved,
    MemberObserved,
    QueueObserved,
    SubscriptionKey,
    TopicObserved,
)
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


def listed_broker(row: Broker, observed: BrokerObserved, at: datetime, *, is_watched: bool) -> bool:
    """Sets what is observed of a broker; returns whether its row is to be written.

    `is_watched`: the lease says up to when the row is true, so that it was seen again is no news.
    """
    version = observed.version if observed.version is not None else row.version
    is_news = _set(row, address=observed.address, last_error=observed.error, version=version)
    is_seen = not observed.error and (is_news or not is_watched or row.seen_at is None)
    if is_seen:
        row.seen_at = at
    return is_news or is_seen


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
            message_model=member.message_model,
            consume_from_where=member.consume_from_where,
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


def _set(row: Model, **values: Any) -> bool:
    """Sets fields of the row; returns whether it is new or any of them had another value."""
    is_changed = row.pk is None
    for name, value in values.items():
        if getattr(row, name) != value:
            setattr(row, name, value)
            is_changed = True
    return is_changed
