"""Keeps the rows of a cluster true: reads the rows that an observation touches, has `plan.py` decide, writes in bulk.

The one writer of what brokers say of topics, queues, groups, members, subscriptions and offsets; what follows from it
(lag, rates, verdicts, timelines) belongs to the receivers of `signals.py`, which are sent once the rows are written. A
small observation is written in one transaction; a large one in parts, each short, so that SQLite's other writers wait
seconds at most. Applying the same observation twice changes nothing the second time, so a call that was interrupted
between two parts is simply made again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Model, Q, QuerySet

from mqadmin.clusters.bulk import chunks, update, upsert
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
from mqadmin.observing import plan
from mqadmin.observing.applied import Applied
from mqadmin.observing.keepable import keepable, keepable_brokers
from mqadmin.observing.observation import (
    BrokerObserved,
    GroupObserved,
    Observation,
    SubscriptionKey,
)
from mqadmin.observing.offset_rows import OffsetRows, renew_ages
from mqadmin.observing.signals import MembershipChange

# What says more than this is written in parts.
WHOLE_SIZE_MAX = 2000

M = TypeVar("M", bound=Model)


def apply(
    cluster: Cluster,
    observation: Observation,
    *,
    is_watched: bool,
    at_the_end: Callable[[], None] = lambda: None,
    between_parts: Callable[[], None] = lambda: None,
    whole_size_max: int = WHOLE_SIZE_MAX,
) -> int:
    """Writes what `observation` says into the rows of `cluster`; returns how many rows that were, receivers' included.

    `is_watched`: what it does not name has not changed. `at_the_end` runs in the last transaction, after all rows are
    written; `between_parts` outside of any, and may raise to interrupt the rest.
    """
    observation = keepable(observation)
    if observation.size > whole_size_max:
        return _Application(cluster, observation, is_watched=is_watched, between_parts=between_parts).run(at_the_end)
    with transaction.atomic():
        application = _Application(cluster, observation, is_watched=is_watched, between_parts=lambda: None)
        return application.run(at_the_end)


def apply_brokers(
    cluster: Cluster,
    observed: Sequence[BrokerObserved],
    at: datetime,
    *,
    is_watched: bool = False,
    deletes: bool = True,
) -> None:
    """Writes the brokers that the name servers list, and deletes those that they do not list any more.

    `is_watched`: a row without news is not written. `deletes` False: a name server is silent, so one that is not listed
    may still be there.
    """
    with transaction.atomic():
        rows = {(row.name, row.broker_id): row for row in cluster.brokers.all()}
        for broker in keepable_brokers(observed):
            row = rows.pop((broker.name, broker.broker_id), None) or Broker(
                cluster=cluster, name=broker.name, broker_id=broker.broker_id
            )
            if plan.listed_broker(row, broker, at, is_watched=is_watched):
                row.save()
        if deletes:
            Broker.objects.filter(pk__in=[row.pk for row in rows.values()]).delete()


def forget_broker(cluster: Cluster, name: str, at: datetime) -> None:
    """Writes that the broker is not one of the cluster's any more: what it alone had is gone."""
    apply(cluster, Observation(at=at, is_complete=True, of_broker=name), is_watched=True)


class _Application:
    """One call of `apply`: the observation, and what it has changed so far."""

    def __init__(
        self, cluster: Cluster, observation: Observation, *, is_watched: bool, between_parts: Callable[[], None]
    ) -> None:
        self._cluster = cluster
        self._observation = observation
        self._at = observation.at
        self._broker = observation.of_broker
        self._is_watched = is_watched
        # Whether others, too, may know what this broker names.
        self._is_shared = False
        self._between_parts = between_parts
        # Topics that have more queues than before: their subscribers read these, too.
        self._widened_topics: set[str] = set()
        # By name, the groups that the observation may change.
        self._rows: dict[str, Group] = {}
        self._applied = Applied(cluster, observation, is_watched)

    def run(self, at_the_end: Callable[[], None]) -> int:
        with self._part():
            self._topics()
            self._topic_queues()
            ids = self._groups()
        for of_groups in chunks(group for group in self._observation.groups if group.members is not None):
            with self._part():
                self._members(of_groups)
        offsets = OffsetRows(self._cluster, self._observation, ids)
        for group_ids in chunks(offsets.groups_to_write(self._widened_topics)):
            with self._part():
                self._applied.publish_committed(offsets.write(group_ids))
                offsets.note_digests(group_ids)
        self._applied.written_count += offsets.written_count
        with self._part():
            if not self._is_watched:
                renew_ages(self._cluster, self._observation)
            self._forget_gone()
        for group_ids in chunks(sorted(self._applied.changed_groups)):
            with self._part():
                self._applied.publish_changed(group_ids)
        with self._part():
            self._applied.publish_topics()
            self._applied.publish_rebalance()
            at_the_end()
        return self._applied.written_count

    @contextmanager
    def _part(self) -> Iterator[None]:
        with transaction.atomic(savepoint=False):
            yield
        self._between_parts()

    def _upsert(self, model: type[M], rows: Sequence[M], unique: Sequence[str]) -> None:
        upsert(model, rows, unique=unique)
        self._applied.written_count += len(rows)

    def _topics(self) -> None:
        names = [topic.name for topic in self._observation.topics]
        rows = {topic.name: topic for topic in _by_name(Topic, self._cluster, names)}
        brokers = set(self._cluster.brokers.values_list("name", flat=True))
        self._is_shared = bool(self._broker) and not brokers <= {self._broker}
        own_names = frozenset((self._cluster.rocketmq_name, *brokers))
        changed = plan.topics(
            self._cluster.pk, rows, self._observation.topics, self._at, own_names, self._observation.of_broker
        )
        self._applied.has_changed_topics = bool(changed)
        self._upsert(Topic, changed, unique=("cluster", "name"))
        if self._observation.is_complete:
            new = self._cluster.brokers.filter(has_told_topics=False)
            (new.filter(name=self._broker) if self._broker else new).update(has_told_topics=True)

    def _topic_queues(self) -> None:
        names = {queue.queue.topic for queue in self._observation.queues}
        if self._broker:
            names |= {topic.name for topic in self._observation.topics}
        topics = {topic.name: topic.pk for topic in _by_name(Topic, self._cluster, names)}
        rows = {
            plan.QueueIdentity(row.topic_id, row.broker_name, row.queue_id): row
            for chunk in chunks(topics.values())
            for row in TopicQueue.objects.filter(topic__in=chunk)
        }
        changed = plan.topic_queues(topics, rows, self._observation.queues, self._at)
        if self._broker:
            known = {*rows, *(plan.QueueIdentity(row.topic_id, row.broker_name, row.queue_id) for row in changed)}
            changed += plan.unwritten_queues(topics, known, self._observation.topics, self._broker, self._at)
        widened = {row.topic_id for row in changed if row.pk is None}
        self._widened_topics = {name for name, topic_id in topics.items() if topic_id in widened}
        self._upsert(TopicQueue, changed, unique=plan.QueueIdentity._fields)
        if not self._is_watched:
            for chunk in chunks(topics.values()):
                TopicQueue.objects.filter(topic__in=chunk).update(seen_at=self._at)
        self._applied.topics = set(topics.values())
        changed_ids = {row.topic_id for row in changed}
        self._applied.grown = {name for name, topic_id in topics.items() if topic_id in changed_ids}
        self._make_due(self._applied.grown)

    def _make_due(self, grown: Iterable[str]) -> None:
        """Has the readers measured by time where that is interrupted: their rows will not change again."""
        for names in chunks(grown):
            readers = QueueOffset.objects.filter(group__cluster=self._cluster, topic_name__in=names)
            due = Group.objects.filter(pk__in=readers.values("group"))
            self._applied.written_count += due.update(due_at=self._at)

    def _groups(self) -> dict[str, int]:
        """Returns the ids of all groups that the observation names; keeps the rows of those that it may change."""
        named = {group.name: group for group in self._observation.groups}
        for commit in self._observation.committed:
            if commit.group not in named:
                named[commit.group] = GroupObserved(name=commit.group)
        ids: dict[str, int] = {}
        in_question = set(named)
        for names in chunks(named):
            stored = Group.objects.filter(cluster=self._cluster, name__in=names)
            for pk, name, *word in stored.values_list("pk", "name", *plan.GroupWord._fields):
                ids[name] = pk
                if plan.is_settled(named[name], plan.GroupWord(*word), self._broker):
                    in_question.remove(name)
        rows = {group.name: group for group in _by_name(Group, self._cluster, in_question)}
        self._applied.had_members_seen = {
            name: at for name, group in rows.items() if (at := self._members_seen_at(group)) is not None
        }
        self._applied.elsewhere = self._members_elsewhere(rows.values())
        observed = [named[name] for name in named if name in in_question]
        changed = plan.groups(self._cluster.pk, rows, observed, self._at, self._broker, self._applied.elsewhere)
        for group in changed:
            group.due_at = self._at  # what measures it comes later, and may be interrupted
        has_new = any(group.pk is None for group in changed)
        self._upsert(Group, changed, unique=("cluster", "name"))
        if has_new:
            rows = {group.name: group for group in _by_name(Group, self._cluster, in_question)}
        self._rows = rows
        self._applied.changed_groups |= {rows[group.name].pk for group in changed}
        return ids | {name: group.pk for name, group in rows.items()}

    def _members_seen_at(self, group: Group) -> datetime | None:
        """Returns when its members were observed last, as far as this broker knows them; None: never."""
        is_of_this_broker = not self._is_shared or self._broker in group.of_brokers
        return group.members_seen_at if is_of_this_broker else None

    def _members_elsewhere(self, groups: Iterable[Group]) -> dict[str, set[str]]:
        found: defaultdict[str, set[str]] = defaultdict(set)
        if self._is_shared:
            for chunk in chunks(group.pk for group in groups):
                online = Member.objects.filter(group__in=chunk, left_at=None)
                for name, client_id, known_by in online.values_list("group__name", "client_id", "known_by"):
                    if not {*known_by} <= {self._broker}:
                        found[name].add(client_id)
        return found

    def _members(self, observed: Sequence[GroupObserved]) -> None:
        groups = self._rows
        ids = [groups[group.name].pk for group in observed]
        members: defaultdict[int, dict[str, Member]] = defaultdict(dict)
        subscriptions: defaultdict[int, dict[SubscriptionKey, Subscription]] = defaultdict(dict)
        for member in Member.objects.filter(group__in=ids):
            members[member.group_id][member.client_id] = member
        for row in Subscription.objects.filter(group__in=ids, ended_at=None):
            subscriptions[row.group_id][_subscription_key(row)] = row
        changed: list[Member] = []
        begun: list[Subscription] = []
        written: list[Subscription] = []
        for group in observed:
            group_id = groups[group.name].pk
            before = {(row.client_id, row.topic_name): row.expression for row in subscriptions[group_id].values()}
            of_members = plan.members(group_id, members[group_id], group.members or (), self._at, self._broker)
            of_subscriptions = plan.subscriptions(
                group_id, subscriptions[group_id], group.subscriptions or {}, self._at, self._broker
            )
            changed += of_members.changed
            begun += of_subscriptions.begun
            written += of_subscriptions.renewed + of_subscriptions.ended
            self._applied.memberships[group.name] = MembershipChange(
                group_id=group_id,
                member_count=groups[group.name].member_count,
                since=None if self._is_watched else self._applied.had_members_seen.get(group.name),
                subscriptions=_subscription_diff(group, of_members, of_subscriptions, before),
                joined=of_members.joined,
                gone=of_members.gone,
            )
        self._upsert(Member, changed, unique=("group", "client_id"))
        Subscription.objects.bulk_create(begun)
        update(Subscription, written, ["sub_version", "known_by", "seen_at", "ended_at"])
        self._applied.written_count += len(begun) + len(written)

    def _forget_gone(self) -> None:
        gone_topics, gone_groups = set(self._observation.gone_topics), set(self._observation.gone_groups)
        if self._observation.is_complete:
            observed_topics = {topic.name for topic in self._observation.topics}
            observed_groups = {group.name for group in self._observation.groups}
            gone_topics |= self._known(self._cluster.topics.all()) - observed_topics
            gone_groups |= self._known(self._cluster.groups.all()) - observed_groups
        for names in chunks(gone_topics):
            self._forget_topics(names)
        for names in chunks(gone_groups):
            self._forget_groups(names)

    def _known(self, rows: QuerySet[Any]) -> set[str]:
        """Returns the names of those that this broker was known to have."""
        if not self._is_shared:
            return set(rows.values_list("name", flat=True))
        return {name for name, of_brokers in rows.values_list("name", "of_brokers") if self._broker in of_brokers}

    def _forget_topics(self, names: Sequence[str]) -> None:
        rows = list(_by_name(Topic, self._cluster, names)) if self._is_shared else []
        kept = [row for row in rows if plan.forget_topic(row, self._broker, self._at)]
        update(Topic, kept, ["of_brokers", "read_queue_count", "write_queue_count", "perm", "seen_at"])
        TopicQueue.objects.filter(topic__in=kept, broker_name=self._broker).delete()
        self._applied.topics |= {row.pk for row in kept}
        self._cluster.topics.filter(name__in=names).exclude(pk__in=[row.pk for row in kept]).delete()
        lost = QueueOffset.objects.filter(group__cluster=self._cluster, topic_name__in=names)
        if self._is_shared:
            lost = lost.filter(broker_name=self._broker)
        losing = set(lost.values_list("group_id", flat=True))
        self._applied.changed_groups |= losing
        lost.delete()
        for chunk in chunks(losing):
            Group.objects.filter(pk__in=chunk).update(committed_digest=0)
        self._applied.has_changed_topics = True

    def _forget_groups(self, names: Sequence[str]) -> None:
        rows = list(_by_name(Group, self._cluster, names)) if self._is_shared else []
        kept = [row for row in rows if plan.forget_group(row, self._broker, self._at)]
        if kept:
            nobody = [GroupObserved(name=row.name, members=()) for row in kept]
            elsewhere = self._members_elsewhere(kept)
            self._applied.had_members_seen |= {row.name: row.members_seen_at or self._at for row in kept}
            of_name = {row.name: row for row in kept}
            plan.groups(self._cluster.pk, of_name, nobody, self._at, self._broker, elsewhere)
            fields = [
                "of_brokers",
                "is_consume_enabled",
                "retry_times_max",
                "member_count",
                "members_seen_at",
                "seen_at",
            ]
            update(Group, kept, fields)
            self._rows |= of_name
            self._members(nobody)
            QueueOffset.objects.filter(group__in=kept, broker_name=self._broker).delete()
            self._applied.changed_groups |= {row.pk for row in kept}
        self._cluster.groups.filter(name__in=names).exclude(pk__in=[row.pk for row in kept]).delete()


def _subscription_diff(
    group: GroupObserved,
    members: plan.MemberChanges,
    subscriptions: plan.SubscriptionChanges,
    before: Mapping[tuple[str, str], str],
) -> dict[str, list[dict[str, str]]]:
    """Returns client id → topics whose expression is another than before, without clients that just came or went.

    `before`: (client id, topic) → expression in force. One that ended while another broker still tells of the next was
    told by the first.
    """
    came_or_went = {*members.joined, *members.gone}
    after = {(row.client_id, row.topic_name): row.expression for row in subscriptions.begun}
    kept = {(row.client_id, row.topic_name) for row in subscriptions.renewed}
    ended = {(row.client_id, row.topic_name) for row in subscriptions.ended}
    diff: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    for client_id, topic in sorted({*ended - kept, *after}):
        if client_id in came_or_went or (not client_id and came_or_went):
            continue
        pair = (client_id, topic)
        diff[client_id].append({"topic": topic, "before": before.get(pair, ""), "after": after.get(pair, "")})
    return diff if group.members else {}


def _by_name(model: type[M], cluster: Cluster, names: Iterable[str]) -> Iterator[M]:
    for chunk in chunks(names):
        yield from model._default_manager.filter(Q(cluster=cluster), name__in=chunk)


def _subscription_key(row: Subscription) -> SubscriptionKey:
    return SubscriptionKey(row.client_id, row.topic_name, row.expression, row.expression_type)
