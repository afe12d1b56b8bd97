"""Keeps the rows of a cluster true: reads the rows that facts touch, has `plan.py` decide, writes in bulk.

The one writer of brokers, topics, groups, members, subscriptions and offsets. Few facts are written in one transaction;
many in parts, each short, so that SQLite's other writers wait seconds at most. Applying the same facts twice changes
nothing the second time, so a call that was interrupted between two parts is simply made again. Open pages are told
after a commit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from django.db import transaction
from django.db.models import Model, Q

from mqadmin.clusters.models import (
    Broker,
    Cluster,
    Group,
    Member,
    QueueOffset,
    Subscription,
    Topic,
    TopicQueue,
)
from mqadmin.lag import measuring
from mqadmin.live.events import Change, ChangeKind, tell_after_commit
from mqadmin.observing import plan
from mqadmin.observing.bulk import chunks, update, upsert
from mqadmin.observing.observation import BrokerObserved, CommitObserved, GroupObserved, Observation, SubscriptionKey
from mqadmin.rebalances import recording
from mqadmin.rebalances.models import RebalanceEvent
from remoting.wire.bodies.message_queue import MessageQueue

# More facts than this are written in parts.
WHOLE_FACTS_MAX = 2000

M = TypeVar("M", bound=Model)


@dataclass(slots=True)
class Touched:
    """What a call changed."""

    has_topics: bool = False
    group_ids: set[int] = field(default_factory=set)
    topic_ids: set[int] = field(default_factory=set)
    drawn: list[Group] = field(default_factory=list)
    events: list[RebalanceEvent] = field(default_factory=list)


def apply(
    cluster: Cluster,
    seen: Observation,
    *,
    is_watched: bool,
    at_the_end: Callable[[], None] = lambda: None,
    between_parts: Callable[[], None] = lambda: None,
) -> Touched:
    """Writes what `seen` says into the rows of `cluster`. `is_watched`: what is not in it has not changed.

    `at_the_end` runs in the last transaction, after all rows are written; `between_parts` outside of any.
    """
    if seen.fact_count > WHOLE_FACTS_MAX:
        application = _Application(cluster, seen, is_watched=is_watched, between_parts=between_parts)
        return application.run(at_the_end)
    with transaction.atomic():
        application = _Application(cluster, seen, is_watched=is_watched, between_parts=lambda: None)
        return application.run(at_the_end)


def apply_brokers(cluster: Cluster, seen: Sequence[BrokerObserved], at: datetime) -> None:
    """Brokers that the name servers do not list any more are deleted."""
    with transaction.atomic():
        rows = {(row.name, row.broker_id): row for row in cluster.brokers.all()}
        for fact in seen:
            row = rows.pop((fact.name, fact.broker_id), None) or Broker(
                cluster=cluster, name=fact.name, broker_id=fact.broker_id
            )
            row.address, row.last_error = fact.address, fact.error
            row.version = fact.version if fact.version is not None else row.version
            row.seen_at = row.seen_at if fact.error else at
            row.save()
        Broker.objects.filter(pk__in=[row.pk for row in rows.values()]).delete()


def tick(
    cluster: Cluster, now: datetime, *, is_watched: bool, between_parts: Callable[[], None] = lambda: None
) -> None:
    """What time alone changes: rates that fall, verdicts that are a matter of time, the cluster's own history."""
    with transaction.atomic():
        measuring.measure_topics(measuring.due_topics(cluster), now, is_watched=is_watched)
    for chunk in chunks(measuring.due_groups(cluster, now)):
        with transaction.atomic():
            drawn = measuring.measure_groups(chunk, now, is_changed=False, is_watched=is_watched)
            _tell(cluster, Touched(drawn=drawn))
        between_parts()
    measuring.note_cluster_lag(cluster, now)


class _Application:
    """One call of `apply`: the facts, and what it has changed so far."""

    def __init__(
        self, cluster: Cluster, seen: Observation, *, is_watched: bool, between_parts: Callable[[], None]
    ) -> None:
        self._cluster = cluster
        self._seen = seen
        self._is_watched = is_watched
        self._between_parts = between_parts
        self._touched = Touched()
        self._changes: dict[str, recording.GroupChange] = {}
        # Groups whose members were seen before: only of those can somebody be found or missed now.
        self._had_members_seen: set[str] = set()

    def run(self, at_the_end: Callable[[], None]) -> Touched:
        with self._part():
            self._topics()
            self._topic_queues()
            groups = self._groups()
        for facts in chunks(fact for fact in self._seen.groups if fact.members is not None):
            with self._part():
                self._members(groups, facts)
        progress = self._progress(groups)
        for group_ids in chunks(set(progress) | self._readers_of_moved_queues()):
            with self._part():
                self._queue_offsets(group_ids, progress)
        with self._part():
            self._forget_gone()
            self._measure_topics()
        for group_ids in chunks(self._touched.group_ids):
            with self._part():
                self._measure_groups(group_ids)
        with self._part():
            self._record()
            _tell(self._cluster, self._touched)
            at_the_end()
        return self._touched

    @contextmanager
    def _part(self) -> Iterator[None]:
        with transaction.atomic(savepoint=False):
            yield
        self._between_parts()

    def _topics(self) -> None:
        names = [topic.name for topic in self._seen.topics]
        rows = {topic.name: topic for topic in _by_name(Topic, self._cluster, names)}
        own_names = frozenset((self._cluster.rocketmq_name, *self._cluster.brokers.values_list("name", flat=True)))
        changed = plan.topics(self._cluster.pk, rows, self._seen.topics, self._seen.at, own_names)
        self._touched.has_topics |= bool(changed)
        upsert(Topic, changed, unique=("cluster", "name"))

    def _topic_queues(self) -> None:
        names = {fact.queue.topic for fact in self._seen.queues}
        if self._seen.only_broker:
            names |= {topic.name for topic in self._seen.topics}
        topics = {topic.name: topic.pk for topic in _by_name(Topic, self._cluster, names)}
        rows = {
            plan.QueueIdentity(row.topic_id, row.broker_name, row.queue_id): row
            for chunk in chunks(topics.values())
            for row in TopicQueue.objects.filter(topic__in=chunk)
        }
        changed = plan.topic_queues(topics, rows, self._seen.queues, self._seen.at)
        if self._seen.only_broker:
            known = {*rows, *(plan.QueueIdentity(row.topic_id, row.broker_name, row.queue_id) for row in changed)}
            changed += plan.unwritten_queues(topics, known, self._seen.topics, self._seen.only_broker, self._seen.at)
        upsert(TopicQueue, changed, unique=plan.QueueIdentity._fields)
        if not self._is_watched:
            for chunk in chunks(topics.values()):
                TopicQueue.objects.filter(topic__in=chunk).update(seen_at=self._seen.at)
        self._touched.topic_ids |= set(topics.values())

    def _groups(self) -> dict[str, Group]:
        """Rows of all groups that the facts name."""
        named = {fact.name: fact for fact in self._seen.groups}
        for fact in self._seen.committed:
            named.setdefault(fact.group, GroupObserved(name=fact.group))
        rows = {group.name: group for group in _by_name(Group, self._cluster, named)}
        self._had_members_seen = {name for name, group in rows.items() if group.members_seen_at is not None}
        changed = plan.groups(self._cluster.pk, rows, named.values(), self._seen.at)
        has_new = any(group.pk is None for group in changed)
        upsert(Group, changed, unique=("cluster", "name"))
        if has_new:
            rows = {group.name: group for group in _by_name(Group, self._cluster, named)}
        self._touched.group_ids |= {rows[group.name].pk for group in changed}
        return rows

    def _members(self, groups: Mapping[str, Group], told: Sequence[GroupObserved]) -> None:
        ids = [groups[fact.name].pk for fact in told]
        members: defaultdict[int, dict[str, Member]] = defaultdict(dict)
        subscriptions: defaultdict[int, dict[SubscriptionKey, Subscription]] = defaultdict(dict)
        for member in Member.objects.filter(group__in=ids):
            members[member.group_id][member.client_id] = member
        for row in Subscription.objects.filter(group__in=ids, ended_at=None):
            subscriptions[row.group_id][_subscription_key(row)] = row
        changed: list[Member] = []
        begun: list[Subscription] = []
        written: list[Subscription] = []
        for fact in told:
            group_id = groups[fact.name].pk
            of_members = plan.members(group_id, members[group_id], fact.members or (), self._seen.at)
            of_subscriptions = plan.subscriptions(
                group_id, subscriptions[group_id], fact.subscriptions or {}, self._seen.at
            )
            changed += of_members.changed
            begun += of_subscriptions.begun
            written += of_subscriptions.renewed + of_subscriptions.ended
            self._changes[fact.name] = recording.GroupChange(
                group_id=group_id,
                member_count=len(fact.members or ()),
                subscriptions=_subscription_diff(fact, of_members, of_subscriptions),
                joined=of_members.joined,
                gone=of_members.gone,
            )
        upsert(Member, changed, unique=("group", "client_id"))
        Subscription.objects.bulk_create(begun)
        update(Subscription, written, ["sub_version", "seen_at", "ended_at"])

    def _readers_of_moved_queues(self) -> set[int]:
        """Their lag changes with the end of the queue, whether or not they were told of."""
        topics = {fact.queue.topic for fact in self._seen.queues}
        return {
            group_id
            for names in chunks(topics)
            for group_id in QueueOffset.objects.filter(group__cluster=self._cluster, topic_name__in=names)
            .values_list("group_id", flat=True)
            .distinct()
        }

    def _queue_offsets(self, group_ids: Sequence[int], progress: Mapping[int, plan.GroupProgress]) -> None:
        rows: defaultdict[int, dict[MessageQueue, QueueOffset]] = defaultdict(dict)
        for row in QueueOffset.objects.filter(group__in=group_ids):
            rows[row.group_id][_queue(row)] = row
        subscribed = self._subscribed_topics(group_ids)
        facts = {
            group_id: replace(
                progress.get(group_id, plan.GroupProgress(group_id)), subscribed_topics=subscribed.get(group_id)
            )
            for group_id in group_ids
        }
        ends = self._ends(facts.values(), rows)
        changed = [
            row
            for group_id, of_group in facts.items()
            for row in plan.queue_offsets(of_group, rows[group_id], ends, self._seen.at)
        ]
        upsert(QueueOffset, changed, unique=("group", "topic_name", "broker_name", "queue_id"))
        self._touched.group_ids |= {row.group_id for row in changed}
        if not self._is_watched:
            self._refresh_ages(group_ids)

    def _progress(self, groups: Mapping[str, Group]) -> dict[int, plan.GroupProgress]:
        committed: defaultdict[str, dict[MessageQueue, CommitObserved]] = defaultdict(dict)
        for offset in self._seen.committed:
            committed[offset.group][offset.queue] = offset
        owners = {fact.name: fact.owners for fact in self._seen.groups if fact.members is not None}
        return {
            groups[name].pk: plan.GroupProgress(
                group_id=groups[name].pk, committed=committed[name], owners=owners.get(name)
            )
            for name in {*committed, *owners}
        }

    def _subscribed_topics(self, group_ids: Sequence[int]) -> dict[int, frozenset[str]]:
        """Of groups with somebody online: with nobody there no subscription is told, and the last known one stays."""
        topics: defaultdict[int, set[str]] = defaultdict(set)
        in_force = Subscription.objects.filter(
            group__in=group_ids, group__member_count__gt=0, client_id="", ended_at=None
        )
        for group_id, topic in in_force.values_list("group_id", "topic_name"):
            topics[group_id].add(topic)
        return {group_id: frozenset(names) for group_id, names in topics.items()}

    def _ends(
        self,
        progress: Iterable[plan.GroupProgress],
        rows: Mapping[int, Mapping[MessageQueue, QueueOffset]],
    ) -> dict[MessageQueue, plan.QueueEnd]:
        topics = {queue.topic for of_group in rows.values() for queue in of_group}
        for facts in progress:
            topics |= facts.subscribed_topics or frozenset()
            topics |= {queue.topic for queue in facts.committed}
        return {
            MessageQueue(row.topic.name, row.broker_name, row.queue_id): plan.QueueEnd(
                row.max_offset, row.last_stored_at, bytes(row.max_history)
            )
            for names in chunks(topics)
            for row in TopicQueue.objects.filter(topic__cluster=self._cluster, topic__name__in=names).select_related(
                "topic"
            )
        }

    def _refresh_ages(self, group_ids: Sequence[int]) -> None:
        """Sampled again and unchanged is seen again: lag is as fresh as the ends of its queues."""
        topics = list({fact.queue.topic for fact in self._seen.queues})
        for names in chunks(topics):
            QueueOffset.objects.filter(group__in=group_ids, topic_name__in=names).update(seen_at=self._seen.at)
        self._touched.group_ids |= set(group_ids)

    def _forget_gone(self) -> None:
        gone_topics, gone_groups = set(self._seen.gone_topics), set(self._seen.gone_groups)
        if self._seen.is_complete:
            told_topics = {topic.name for topic in self._seen.topics}
            told_groups = {group.name for group in self._seen.groups}
            gone_topics |= set(self._cluster.topics.values_list("name", flat=True)) - told_topics
            gone_groups |= set(self._cluster.groups.values_list("name", flat=True)) - told_groups
        for names in chunks(gone_topics):
            self._cluster.topics.filter(name__in=names).delete()
            lost = QueueOffset.objects.filter(group__cluster=self._cluster, topic_name__in=names)
            self._touched.group_ids |= set(lost.values_list("group_id", flat=True))
            lost.delete()
            self._touched.has_topics = True
        for names in chunks(gone_groups):
            self._cluster.groups.filter(name__in=names).delete()

    def _measure_topics(self) -> None:
        for chunk in chunks(self._touched.topic_ids):
            measuring.measure_topics(Topic.objects.filter(pk__in=chunk), self._seen.at, is_watched=self._is_watched)

    def _measure_groups(self, group_ids: Sequence[int]) -> None:
        self._touched.drawn += measuring.measure_groups(
            Group.objects.filter(pk__in=group_ids), self._seen.at, is_changed=True, is_watched=self._is_watched
        )

    def _record(self) -> None:
        """A watch's snapshot is a sample too: what happened before it was not told."""
        if self._is_watched and not self._seen.is_complete:
            events = recording.told(self._cluster.pk, self._seen.happened, self._changes)
        else:
            comparable = [change for name, change in self._changes.items() if name in self._had_members_seen]
            events = recording.sampled(self._cluster.pk, comparable, self._seen.at)
        recording.record(events)
        self._touched.events = events


def _subscription_diff(
    fact: GroupObserved, members: plan.MemberChanges, subscriptions: plan.SubscriptionChanges
) -> dict[str, list[dict[str, str]]]:
    """Client id → topics whose expression is another than before. Who just came or went did not change its mind."""
    came_or_went = {*members.joined, *members.gone}
    before = {(row.client_id, row.topic_name): row.expression for row in subscriptions.ended}
    after = {(row.client_id, row.topic_name): row.expression for row in subscriptions.begun}
    diff: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    for client_id, topic in sorted({*before, *after}):
        if client_id in came_or_went or (not client_id and came_or_went):
            continue
        pair = (client_id, topic)
        diff[client_id].append({"topic": topic, "before": before.get(pair, ""), "after": after.get(pair, "")})
    return diff if fact.members else {}


def _tell(cluster: Cluster, touched: Touched) -> None:
    changes = [Change(ChangeKind.GROUP, cluster.name, group.name, group.revision) for group in touched.drawn]
    names = {group.pk: group.name for group in touched.drawn}
    with_events = {event.group_id for event in touched.events}
    changes += [Change(ChangeKind.REBALANCE, cluster.name, names[pk]) for pk in with_events if pk in names]
    if touched.drawn:
        changes.append(Change(ChangeKind.GROUPS, cluster.name))
    if touched.topic_ids or touched.has_topics:
        changes.append(Change(ChangeKind.TOPICS, cluster.name))
    if touched.events:
        changes.append(Change(ChangeKind.REBALANCES, cluster.name))
    tell_after_commit(changes)


def _by_name(model: type[M], cluster: Cluster, names: Iterable[str]) -> Iterator[M]:
    for chunk in chunks(names):
        yield from model._default_manager.filter(Q(cluster=cluster), name__in=chunk)


def _queue(row: QueueOffset) -> MessageQueue:
    return MessageQueue(row.topic_name, row.broker_name, row.queue_id)


def _subscription_key(row: Subscription) -> SubscriptionKey:
    return SubscriptionKey(row.client_id, row.topic_name, row.expression, row.expression_type)
