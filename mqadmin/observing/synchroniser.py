"""Keeps the rows of a cluster true: reads the rows that an observation touches, has `plan.py` decide, writes in bulk.

The one writer of brokers, topics, queues, groups, members, subscriptions and offsets; what follows from them (lag,
rates, verdicts, timelines) belongs to the receivers of `signals.py`, which are sent once the rows are written. A small
observation is written in one transaction; a large one in parts, each short, so that SQLite's other writers wait seconds
at most. Applying the same observation twice changes nothing the second time, so a call that was interrupted between two
parts is simply made again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from mqadmin.clusters.bulk import Change, chunks, update, upsert, write
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
from mqadmin.observing.observation import (
    BrokerObserved,
    CommitObserved,
    GroupObserved,
    Observation,
    ObservedEvent,
    SubscriptionKey,
)
from mqadmin.observing.signals import (
    GroupsChanged,
    GroupsCommitted,
    MembershipChange,
    RebalanceObserved,
    TopicsChanged,
    groups_changed,
    groups_committed,
    publish,
    rebalance_observed,
    topics_changed,
)
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.watch import ASSIGNMENT_CHANGED

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
    if observation.size > whole_size_max:
        return _Application(cluster, observation, is_watched=is_watched, between_parts=between_parts).run(at_the_end)
    with transaction.atomic():
        application = _Application(cluster, observation, is_watched=is_watched, between_parts=lambda: None)
        return application.run(at_the_end)


def apply_brokers(cluster: Cluster, observed: Sequence[BrokerObserved], at: datetime, *, deletes: bool = True) -> None:
    """Writes the brokers that the name servers list, and deletes those that they do not list any more.

    `deletes` False: a name server is silent, so one that is not listed may still be there.
    """
    with transaction.atomic():
        rows = {(row.name, row.broker_id): row for row in cluster.brokers.all()}
        for broker in observed:
            row = rows.pop((broker.name, broker.broker_id), None) or Broker(
                cluster=cluster, name=broker.name, broker_id=broker.broker_id
            )
            row.address, row.last_error = broker.address, broker.error
            row.version = broker.version if broker.version is not None else row.version
            row.seen_at = row.seen_at if broker.error else at
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
        self._written_count = 0
        self._topic_ids: set[int] = set()
        self._has_changed_topics = False
        # Topics that have more queues than before: their subscribers read these, too.
        self._widened_topics: set[str] = set()
        # Topics of which a queue reaches further than before.
        self._grown: set[str] = set()
        # By name, the groups that the observation may change.
        self._rows: dict[str, Group] = {}
        self._changed_groups: set[int] = set()
        self._committed_groups: set[int] = set()
        self._memberships: dict[str, MembershipChange] = {}
        # Groups whose members were observed before: only these can be compared with now.
        self._had_members_seen: set[str] = set()
        # Group → client ids that other brokers know to be online.
        self._elsewhere: dict[str, set[str]] = {}

    def run(self, at_the_end: Callable[[], None]) -> int:
        with self._part():
            self._topics()
            self._topic_queues()
            ids = self._groups()
        for of_groups in chunks(group for group in self._observation.groups if group.members is not None):
            with self._part():
                self._members(of_groups)
        progress = self._progress(ids)
        for group_ids in chunks(sorted(set(progress) | self._readers_of_widened_topics())):
            with self._part():
                self._publish_committed(self._queue_offsets(group_ids, progress))
                self._note_digests(group_ids, ids)
        with self._part():
            self._renew_ages()
            self._forget_gone()
        for group_ids in chunks(sorted(self._changed_groups)):
            with self._part():
                self._written_count += publish(groups_changed, GroupsChanged(**self._applied(), group_ids=group_ids))
        with self._part():
            self._publish_topics()
            self._publish_rebalance()
            at_the_end()
        return self._written_count

    @contextmanager
    def _part(self) -> Iterator[None]:
        with transaction.atomic(savepoint=False):
            yield
        self._between_parts()

    def _upsert(self, model: type[M], rows: Sequence[M], unique: Sequence[str]) -> None:
        upsert(model, rows, unique=unique)
        self._written_count += len(rows)

    def _topics(self) -> None:
        names = [topic.name for topic in self._observation.topics]
        rows = {topic.name: topic for topic in _by_name(Topic, self._cluster, names)}
        brokers = set(self._cluster.brokers.values_list("name", flat=True))
        self._is_shared = bool(self._broker) and not brokers <= {self._broker}
        own_names = frozenset((self._cluster.rocketmq_name, *brokers))
        changed = plan.topics(
            self._cluster.pk, rows, self._observation.topics, self._at, own_names, self._observation.of_broker
        )
        self._has_changed_topics = bool(changed)
        self._upsert(Topic, changed, unique=("cluster", "name"))

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
        self._topic_ids = set(topics.values())
        changed_ids = {row.topic_id for row in changed}
        self._grown = {name for name, topic_id in topics.items() if topic_id in changed_ids}
        self._make_due(self._grown)

    def _make_due(self, grown: Iterable[str]) -> None:
        """Has the readers measured by time where that is interrupted: their rows will not change again."""
        for names in chunks(grown):
            readers = QueueOffset.objects.filter(group__cluster=self._cluster, topic_name__in=names)
            Group.objects.filter(pk__in=readers.values("group")).update(due_at=self._at)

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
        self._had_members_seen = {name for name, group in rows.items() if self._had_seen_members(group)}
        self._elsewhere = self._members_elsewhere(rows.values())
        observed = [named[name] for name in named if name in in_question]
        changed = plan.groups(self._cluster.pk, rows, observed, self._at, self._broker, self._elsewhere)
        for group in changed:
            group.due_at = self._at  # what measures it comes later, and may be interrupted
        has_new = any(group.pk is None for group in changed)
        self._upsert(Group, changed, unique=("cluster", "name"))
        if has_new:
            rows = {group.name: group for group in _by_name(Group, self._cluster, in_question)}
        self._rows = rows
        self._changed_groups |= {rows[group.name].pk for group in changed}
        return ids | {name: group.pk for name, group in rows.items()}

    def _had_seen_members(self, group: Group) -> bool:
        is_of_this_broker = not self._is_shared or self._broker in group.of_brokers
        return group.members_seen_at is not None and is_of_this_broker

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
            self._memberships[group.name] = MembershipChange(
                group_id=group_id,
                member_count=groups[group.name].member_count,
                subscriptions=_subscription_diff(group, of_members, of_subscriptions, before),
                joined=of_members.joined,
                gone=of_members.gone,
            )
        self._upsert(Member, changed, unique=("group", "client_id"))
        Subscription.objects.bulk_create(begun)
        update(Subscription, written, ["sub_version", "known_by", "seen_at", "ended_at"])
        self._written_count += len(begun) + len(written)

    def _readers_of_widened_topics(self) -> set[int]:
        return {
            group_id
            for names in chunks(self._widened_topics)
            for group_id in Subscription.objects.filter(
                group__cluster=self._cluster, topic_name__in=names, client_id="", ended_at=None
            ).values_list("group_id", flat=True)
        }

    def _queue_offsets(self, group_ids: Sequence[int], progress: Mapping[int, plan.GroupProgress]) -> set[int]:
        """Returns the ids of the groups of which something changed."""
        rows: defaultdict[int, list[plan.OffsetRow]] = defaultdict(list)
        stored = QueueOffset.objects.filter(group__in=group_ids).values_list("group_id", *plan.OffsetRow._fields)
        for group_id, *values in stored:
            rows[group_id].append(plan.OffsetRow(*values))
        subscribed = self._subscribed_topics(group_ids)
        queues = self._queues_of({name for names in subscribed.values() for name in names})
        created: list[QueueOffset] = []
        changed: list[Change] = []
        moved: set[int] = set()
        for group_id in group_ids:
            of_group = progress.get(group_id) or plan.GroupProgress(group_id)
            if group_id in subscribed:
                of_group = replace(of_group, subscribed_topics=subscribed[group_id])
            for row, values in plan.queue_offsets(of_group, rows[group_id], queues, self._at):
                moved.add(group_id)
                if row.pk is None:
                    created.append(
                        QueueOffset(
                            group_id=group_id,
                            topic_name=row.topic_name,
                            broker_name=row.broker_name,
                            queue_id=row.queue_id,
                            **values,
                        )
                    )
                else:
                    changed.append(Change(row.pk, values))
        self._upsert(QueueOffset, created, unique=("group", "topic_name", "broker_name", "queue_id"))
        write(QueueOffset, changed)
        self._written_count += len(changed)
        return moved

    def _progress(self, ids: Mapping[str, int]) -> dict[int, plan.GroupProgress]:
        committed: defaultdict[str, dict[MessageQueue, CommitObserved]] = defaultdict(dict)
        for commit in self._observation.committed:
            committed[commit.group][commit.queue] = commit
        owners = {group.name: group.owners for group in self._observation.groups if group.members is not None}
        return {
            ids[name]: plan.GroupProgress(
                group_id=ids[name], broker=self._broker, committed=committed[name], owners=owners.get(name)
            )
            for name in {*committed, *owners}
        }

    def _subscribed_topics(self, group_ids: Sequence[int]) -> dict[int, frozenset[str]]:
        """Returns those of groups with members online: without any, the last known subscription stays."""
        topics: defaultdict[int, set[str]] = defaultdict(set)
        in_force = Subscription.objects.filter(
            group__in=group_ids, group__member_count__gt=0, client_id="", ended_at=None
        )
        for group_id, topic in in_force.values_list("group_id", "topic_name"):
            topics[group_id].add(topic)
        return {group_id: frozenset(names) for group_id, names in topics.items()}

    def _queues_of(self, topic_names: Iterable[str]) -> list[MessageQueue]:
        return [
            MessageQueue(*identity)
            for names in chunks(topic_names)
            for identity in TopicQueue.objects.filter(topic__cluster=self._cluster, topic__name__in=names).values_list(
                "topic__name", "broker_name", "queue_id"
            )
        ]

    def _renew_ages(self) -> None:
        """Renews `seen_at` of rows that were sampled and are unchanged: lag is as fresh as the ends of its queues."""
        if self._is_watched:
            return
        topics: defaultdict[str, set[str]] = defaultdict(set)
        for queue in self._observation.queues:
            topics[queue.queue.broker_name].add(queue.queue.topic)
        # Correlated, so that both databases go by the index of topics: a list of groups would have them read all rows.
        is_of_cluster = Exists(Group.objects.filter(pk=OuterRef("group"), cluster=self._cluster))
        for broker, sampled in topics.items():
            for names in chunks(sampled):
                rows = QueueOffset.objects.filter(is_of_cluster, topic_name__in=names, broker_name=broker)
                rows.exclude(seen_at=self._at).update(seen_at=self._at)

    def _note_digests(self, group_ids: Sequence[int], ids: Mapping[str, int]) -> None:
        """Writes, in the transaction that wrote the rows, of which answer they are the word."""
        told, of_chunk = self._observation.digests, set(group_ids)
        digests = ((ids[name], digest) for name, digest in told.items())
        write(Group, [Change(pk, {"committed_digest": digest}) for pk, digest in digests if pk in of_chunk])

    def _publish_committed(self, group_ids: AbstractSet[int]) -> None:
        """Publishes in the transaction that wrote the rows: nothing else would ever have these groups measured.

        Groups that changed otherwise are published as such, once all of them are written.
        """
        self._committed_groups |= group_ids
        if of_groups := sorted(group_ids - self._changed_groups):
            event = GroupsCommitted(**self._applied(), group_ids=of_groups)
            self._written_count += publish(groups_committed, event)

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
        self._topic_ids |= {row.pk for row in kept}
        self._cluster.topics.filter(name__in=names).exclude(pk__in=[row.pk for row in kept]).delete()
        lost = QueueOffset.objects.filter(group__cluster=self._cluster, topic_name__in=names)
        if self._is_shared:
            lost = lost.filter(broker_name=self._broker)
        losing = set(lost.values_list("group_id", flat=True))
        self._changed_groups |= losing
        lost.delete()
        for chunk in chunks(losing):
            Group.objects.filter(pk__in=chunk).update(committed_digest=0)
        self._has_changed_topics = True

    def _forget_groups(self, names: Sequence[str]) -> None:
        rows = list(_by_name(Group, self._cluster, names)) if self._is_shared else []
        kept = [row for row in rows if plan.forget_group(row, self._broker, self._at)]
        if kept:
            nobody = [GroupObserved(name=row.name, members=()) for row in kept]
            elsewhere = self._members_elsewhere(kept)
            self._had_members_seen |= {row.name for row in kept}
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
            self._changed_groups |= {row.pk for row in kept}
        self._cluster.groups.filter(name__in=names).exclude(pk__in=[row.pk for row in kept]).delete()

    def _applied(self) -> dict[str, Any]:
        return {"cluster": self._cluster, "at": self._at, "is_watched": self._is_watched}

    def _publish_topics(self) -> None:
        """Leaves `grown` empty for the snapshot of a watch: it names all groups itself."""
        if not self._topic_ids and not self._has_changed_topics:
            return
        sampled = {queue.queue.topic for queue in self._observation.queues}
        # What is watched may be told twice, because the first time was interrupted.
        grown = sampled if self._is_watched else self._grown
        event = TopicsChanged(
            **self._applied(),
            topic_ids=sorted(self._topic_ids),
            grown=() if self._is_watched and self._observation.is_complete else sorted(grown),
            seen_again=sorted(sampled - grown),
            named_group_ids=self._changed_groups | self._committed_groups,
        )
        self._written_count += publish(topics_changed, event)

    def _is_news(self, event: ObservedEvent, changes: Mapping[str, MembershipChange]) -> bool:
        """Tells whether the event is the first word of it: a client connects to every broker of the cluster."""
        if event.kind == ASSIGNMENT_CHANGED or event.client_id not in self._elsewhere.get(event.group, ()):
            return True
        change = changes.get(event.group)
        return change is not None and event.client_id in change.subscriptions

    def _publish_rebalance(self) -> None:
        """Treats the snapshot of a watch as a sample: what happened before it was not reported."""
        is_sampled = not self._is_watched or self._observation.is_complete
        changes = self._memberships
        if is_sampled:
            changes = {name: change for name, change in changes.items() if name in self._had_members_seen}
        if changes:
            events = (
                () if is_sampled else [event for event in self._observation.events if self._is_news(event, changes)]
            )
            event = RebalanceObserved(**self._applied(), changes=changes, events=events, is_sampled=is_sampled)
            self._written_count += publish(rebalance_observed, event)


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
